use super::*;

#[test]
fn copies_follow_the_shape() {
    let src: Vec<u8> = (0..=255).collect();
    for block in [1, 2, 3, 4, 8, 16] {
        let shape = Shape::strided(&[block, 3, 2], &[19, 70], &[17, 60]).unwrap();
        let mut dst = vec![0u8; 256];
        let mut expected = dst.clone();
        shape.for_each(&mut |l, r| {
            let (l, r) = (l as usize, r as usize);
            expected[r..r + block].copy_from_slice(&src[l..l + block]);
        });
        // SAFETY: the extents, 70+2*19+16 and 60+2*17+16, are below 256.
        unsafe { copy(src.as_ptr(), dst.as_mut_ptr(), &shape, true) };
        assert_eq!(dst, expected);
        let mut back = vec![0u8; 256];
        // SAFETY: the extents, 70+2*19+16 and 60+2*17+16, are below 256.
        unsafe { copy(dst.as_ptr(), back.as_mut_ptr(), &shape, false) };
        shape.for_each(&mut |l, _| {
            let l = l as usize;
            assert_eq!(back[l..l + block], src[l..l + block]);
        });
    }
}

/// Covers each block size with a loop of its own and one without, and strides of either sign.
#[test]
fn far_rows_are_copied_as_near_ones() {
    let (mut numbers, mut blocks) = (
        vec![2 * AHEAD - 1, 2 * AHEAD, 3 * AHEAD + 5],
        vec![1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 128],
    );
    if cfg!(miri) {
        (numbers, blocks) = (vec![2 * AHEAD], vec![1, 24, 128]);
    }
    for n in numbers {
        for &block in &blocks {
            for (far, backward) in [(FAR, false), (FAR + 64, true)] {
                let dense: Vec<u8> = (0..n * block).map(|i| (i % 251 + 1) as u8).collect();
                let mut matrix = vec![0u8; far * (n - 1) + block];
                let first = if backward { far * (n - 1) } else { 0 };
                let stride = if backward { -(far as isize) } else { far as isize };
                let shape = Shape::strided(&[block, n], &[block as isize], &[stride]).unwrap();
                let mut back = vec![0u8; n * block];
                // SAFETY: the extents match the arrays.
                unsafe {
                    copy(dense.as_ptr(), matrix.as_mut_ptr().add(first), &shape, true);
                    copy(matrix.as_ptr().add(first), back.as_mut_ptr(), &shape, false);
                }
                assert_eq!(back, dense, "{n} blocks of {block} bytes, {stride} apart");
                let zeros = vec![0; far];
                let kept = matrix.chunks(far).all(|row| row[block..] == zeros[..row.len() - block]);
                assert!(kept, "nothing else is written");
            }
        }
    }
}

/// Processors of other makes copy such rows as all others.
#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "it lacks the instructions")]
fn crowded_rows_are_stored_as_others() {
    type Block = [u8; 24];
    let size = size_of::<Block>();
    for (n, backward) in [(CROWD, false), (CROWD + 1, true)] {
        let dense: Vec<u8> = (0..n * size).map(|i| (i % 251 + 1) as u8).collect();
        let far = FEW_SETS as usize;
        let mut matrix = vec![0u8; far * n];
        let (first, stride) = if backward { (far * (n - 1), -FEW_SETS) } else { (0, FEW_SETS) };
        let to = matrix.as_mut_ptr().wrapping_add(first);
        // SAFETY: both sides have `n` blocks.
        unsafe { store_crowded_rows::<Block>(dense.as_ptr(), to, n, size as isize, stride) };
        for (i, block) in dense.chunks(size).enumerate() {
            let row = if backward { n - 1 - i } else { i };
            let (stored, rest) = matrix[row * far..][..far].split_at(size);
            assert_eq!(stored, block, "block {i} of {n}");
            assert!(rest.iter().all(|byte| *byte == 0), "nothing else is written");
        }
    }
}

#[test]
fn accumulates_scale_and_add() {
    let (src, mut dst) = ([1.0f64, -2.0, 3.5], [10.0f64; 3]);
    let twice = Scale::Double(2.0);
    // SAFETY: both arrays have 24 bytes.
    unsafe { accumulate(src.as_ptr().cast(), dst.as_mut_ptr().cast(), 24, &twice) };
    assert_eq!(dst, [12.0, 6.0, 17.0]);
    let x = [Complex::new(1.0f32, 2.0)];
    let mut y = [Complex::new(0.5f32, 0.0)];
    let i = Scale::FloatComplex(Complex::new(0.0, 1.0));
    // SAFETY: both arrays have 8 bytes.
    unsafe { accumulate(x.as_ptr().cast(), y.as_mut_ptr().cast(), 8, &i) };
    assert_eq!(y[0], Complex::new(-1.5, 1.0));
    let mut z = [i32::MAX];
    // SAFETY: both sides have one element.
    unsafe { accumulate([1i32].as_ptr().cast(), z.as_mut_ptr().cast(), 4, &Scale::Int(1)) };
    assert_eq!(z[0], i32::MIN);
}

/// Long accumulates, whose loop depends on the processor, give the same bits as single ones.
#[test]
fn long_accumulates_round_as_short_ones() {
    let scales = [
        Scale::Bool(true),
        Scale::Bool(false),
        Scale::Byte(-3),
        Scale::Short(1000),
        Scale::Int(-3),
        Scale::Long(1),
        Scale::Long(-(1 << 40) - 3),
        Scale::Float(1.1),
        Scale::Double(-0.3),
        Scale::FloatComplex(Complex::new(0.7, -1.3)),
        Scale::DoubleComplex(Complex::new(1.0 / 3.0, 1e-7)),
    ];
    for scale in scales {
        let element = scale.element();
        for (bytes, shift) in [(96, 0), (128, 1), (1040, 0), (4096, 3), (4112, 8)] {
            // Small exponents avoid NaNs, whose bits may differ.
            let byte = |i: usize, salt: usize| {
                if i % 4 == 3 { 0x3f } else { (i * salt % 251) as u8 }
            };
            let src: Vec<u8> = (0..bytes + shift).map(|i| byte(i, 37)).collect();
            let mut long: Vec<u8> = (0..bytes + shift).map(|i| byte(i, 59)).collect();
            let mut short = long.clone();
            // SAFETY: both vectors have `shift + bytes` bytes.
            unsafe {
                let (x, y) = (src.as_ptr().add(shift), long.as_mut_ptr().add(shift));
                accumulate(x, y, bytes, &scale);
                for at in (0..bytes).step_by(element) {
                    accumulate(x.add(at), short.as_mut_ptr().add(shift + at), element, &scale);
                }
            }
            assert_eq!(long, short, "{scale:?}, {bytes} bytes");
        }
    }
}
