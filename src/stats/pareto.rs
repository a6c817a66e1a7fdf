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
}
