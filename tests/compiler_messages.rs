//! The compiler's messages about element types and operators that a function does not take. They
//! must say what is possible.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The body of a function of a group and segments, and a part of the message about it.
const WRONG: &[(&str, &str)] = &[
    ("group.allocate::<bool>(8)", "`bool` cannot be an element of a segment or a collective"),
    ("group.gather(0, &[String::new()])", "structures that derive `bytemuck::Pod`"),
    ("floats.fetch_add(0, 0, 1.0)", "elements of type `f64` have no atomic operations"),
    (
        "bytes.compare_swap(0, 0, 1, 2)",
        "atomic operations change `i32`, `u32`, `i64`, `u64`, `isize` and `usize`",
    ),
    ("wide.accumulate(0, 0, 1, &[1])", "elements of type `u128` cannot be accumulated"),
    ("group.all_reduce(&mut ['a'], Sum)", "elements of type `char` cannot be reduced"),
    ("group.all_reduce_value(1.5f64, Or)", "is not defined for elements of type `f64`"),
    ("group.scan(&mut [i], Max)", "`Min` and `Max` combine integers and floats"),
    (
        "std::thread::scope(|s| s.spawn(|| floats.get_value(0, 0)).join().is_ok())",
        "`*const RuntimeStaysOnItsThread` cannot be shared between threads safely",
    ),
];

/// Fields that the message about another thread must not name, because they are not the reason.
const INNER: &[&str] = &["RefCell<", "HashMap", "`Cell<"];

fn libraries(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).expect("the directory of the test");
    let mut found: Vec<_> = files
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_it = name.starts_with("libportolan-") && name.ends_with(".rlib");
            is_it.then_some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn message(body: &str) -> String {
    let program = format!(
        "use portolan::num_complex::Complex;
         use portolan::reduce::*;
         use portolan::*;
         pub fn f(group: &Group<'_>, floats: &Segment<'_, f64>, bytes: &Segment<'_, u8>,
                  wide: &Segment<'_, u128>) {{
             let i = Complex::new(0.0f32, 1.0);
             let _ = {body};
         }}"
    );
    let own = std::env::current_exe().expect("the path of the test");
    let directory = own.parent().expect("a directory");
    let scratch = tempfile::tempdir().expect("a directory for the program");
    let source = scratch.path().join("wrong.rs");
    std::fs::write(&source, program).expect("the program");
    let compile = |library: &PathBuf| {
        let run = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-o"])
            .arg(scratch.path().join("wrong.rmeta"))
            .arg("-L")
            .arg(format!("dependency={}", directory.display()))
            .arg("--extern")
            .arg(format!("portolan={}", library.display()))
            .arg(&source)
            .output()
            .expect("rustc");
        String::from_utf8_lossy(&run.stderr).into_owned()
    };
    // A library of an earlier build may not fit the others any more.
    let stale = |text: &String| ["E0460", "E0463", "E0514"].iter().any(|code| text.contains(code));
    let text = libraries(directory).iter().map(compile).find(|text| !stale(text));
    text.expect("the compiled crate beside the test")
}

#[test]
fn wrong_element_types_are_explained() {
    let right = message("group.all_reduce_value(1, Sum)");
    assert!(!right.contains("error"), "{right}");
    for (body, part) in WRONG {
        let text = message(body);
        let text = text.replace("portolan::one_thread::", "");
        assert!(text.contains(part), "{body} gives:\n{text}");
        assert!(!INNER.iter().any(|inner| text.contains(inner)), "{body} gives:\n{text}");
    }
}
