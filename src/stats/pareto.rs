//! The Pareto front: what nothing else beats in every respect at once.

/// A point with two objectives, both turned so that higher is better. What is not a number is on no
/// front.
pub type Point = [f64; 2];

/// Whether `left` is at least as good in everything and better in something.
pub fn dominates(left: &[f64], right: &[f64]) -> bool {
    left.iter().zip(right).all(|(l, r)| l >= r) && left.iter().zip(right).any(|(l, r)| l > r)
}

/// Which points no other point dominates. Points that are equal are on the front together.
pub fn front(points: &[Point]) -> Vec<bool> {
    let on_front = points.iter().map(|point| {
        point.iter().all(|value| value.is_finite())
            && !points.iter().any(|other| dominates(other, point))
    });
    on_front.collect()
}

/// How often each point is on the front when one session after the other is left out.
///
/// `of_sessions[p][s]` is point p on session s, objective by objective; a point is the mean over the
/// sessions kept. All points have the same sessions. A front that hangs on one session shows a share
/// below 1 here. Nothing below two sessions.
pub fn jackknife(of_sessions: &[Vec<Point>]) -> Option<Vec<f64>> {
    let sessions = of_sessions.first()?.len();
    if sessions < 2 || of_sessions.iter().any(|point| point.len() != sessions) {
        return None;
    }
    let mut times = vec![0_usize; of_sessions.len()];
    for left_out in 0..sessions {
        let without =
            |point: &Vec<Point>| mean(&[&point[..left_out], &point[left_out + 1..]].concat());
        let points: Vec<Point> = of_sessions.iter().map(without).collect();
        for (times, on_front) in times.iter_mut().zip(front(&points)) {
            *times += usize::from(on_front);
        }
    }
    Some(times.into_iter().map(|times: usize| times as f64 / sessions as f64).collect())
}

/// The mean of a point over its sessions; not a number without one.
pub fn mean(sessions: &[Point]) -> Point {
    let sums = [0, 1].map(|objective| sessions.iter().map(|point| point[objective]).sum::<f64>());
    sums.map(|sum| sum / sessions.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
        pairs.iter().map(|(x, y)| [*x, *y]).collect()
    }

    #[test]
    fn what_is_beaten_in_everything_is_off_the_front() {
        let points =
            points(&[(0.1, 0.9), (0.5, 0.8), (0.4, 0.8), (0.9, 0.1), (0.5, 0.8), (f64::NAN, 1.0)]);
        assert_eq!(front(&points), [true, true, false, true, true, false]);
        assert!(front(&[]).is_empty());
    }

    #[test]
    fn a_place_that_hangs_on_one_session_is_seen() {
        let steady = vec![[0.5, 0.5]; 4];
        // Better than `steady` in both, but only thanks to its first session.
        let lucky = vec![[1.0, 1.0], [0.4, 0.4], [0.4, 0.4], [0.4, 0.4]];
        let shares = jackknife(&[steady.clone(), lucky]).unwrap();
        assert!((shares[0] - 0.25).abs() < 1e-12, "{shares:?}");
        assert!((shares[1] - 0.75).abs() < 1e-12, "{shares:?}");
        assert_eq!(jackknife(&[vec![[1.0, 1.0]]]), None);
        assert!(mean(&steady).iter().all(|it| (it - 0.5).abs() < 1e-12));
    }
}
