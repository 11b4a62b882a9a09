//! Formats numbers and sizes.

/// Four significant digits, but at most four decimals. Keeps all digits before the decimal point.
pub fn number(value: f64) -> String {
    let digits = if value <= 0.0 { 2 } else { (3 - value.log10().floor() as i32).clamp(0, 4) };
    format!("{value:.*}", digits as usize)
}

/// Formats a number of bytes with a binary unit.
pub fn bytes(n: usize) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if n >= 1 << shift {
            let value = n as f64 / f64::from(1u32 << shift);
            return if value.fract() == 0.0 {
                format!("{value} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
    }
    format!("{n} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_figures() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.009_12, "0.0091"),
            (1.23456, "1.235"),
            (98.765, "98.77"),
            (123456.7, "123457"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1 << 20), "1 MiB");
        assert_eq!(bytes(1536), "1.5 KiB");
    }
}
