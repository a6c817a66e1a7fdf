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
    points
        .iter()
        .map(|point| {
            point.iter().all(|value| value.is_finite())
                && !points.iter().any(|other| dominates(other, point))
        })
        .collect()
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
    let share = |times: usize| times as f64 / sessions as f64;
    Some(times.into_iter().map(share).collect())
}

/// The mean of a point over its sessions; not a number without one.
pub fn mean(sessions: &[Point]) -> Point {
    let sum = |objective: usize| sessions.iter().map(|point| point[objective]).sum::<f64>();
    [sum(0), sum(1)].map(|sum| sum / sessions.len() as f64)
}

/// The knee: the point of the front that lies farthest above the line between its two ends, with
/// both objectives scaled to the front's own range (as in the method called Kneedle, 2011). With
/// two points or fewer, the one that is best in the second objective. `None` without a front.
pub fn knee(points: &[Point], front: &[bool]) -> Option<usize> {
    let mut on: Vec<usize> = (0..points.len()).filter(|at| front[*at]).collect();
    // Stable: of equal points the first comes first.
    on.sort_by(|l, r| {
        let by_first = points[*l][0].total_cmp(&points[*r][0]);
        by_first.then(points[*r][1].total_cmp(&points[*l][1]))
    });
    let (first, last) = (*on.first()?, *on.last()?);
    if on.len() <= 2 {
        return Some(first);
    }
    let width = points[last][0] - points[first][0];
    let height = points[first][1] - points[last][1];
    if width <= 0.0 || height <= 0.0 {
        return Some(first);
    }
    let above = |at: usize| {
        let x = (points[at][0] - points[first][0]) / width;
        let y = (points[at][1] - points[last][1]) / height;
        x + y
    };
    let better = |best, at| {
        if above(at) > above(best) + 1e-12 {
            at
        } else {
            best
        }
    };
    on.into_iter().reduce(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
        pairs.iter().map(|(x, y)| [*x, *y]).collect()
    }

    #[test]
    fn what_is_beaten_in_everything_is_off_the_front() {
        let points = points(&[
            (0.1, 0.9),
            (0.5, 0.8),
            (0.4, 0.8),
            (0.9, 0.1),
            (0.5, 0.8),
            (f64::NAN, 1.0),
        ]);
        assert_eq!(front(&points), [true, true, false, true, true, false]);
        assert_eq!(knee(&points, &front(&points)), Some(1));
        assert!(front(&[]).is_empty());
        assert_eq!(knee(&[], &[]), None);
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

    #[test]
    fn the_knee_of_a_straight_front_is_its_best_end() {
        let ends = points(&[(0.0, 1.0), (1.0, 0.0)]);
        assert_eq!(knee(&ends, &front(&ends)), Some(0));
    }
}
