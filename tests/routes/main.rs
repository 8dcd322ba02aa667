//! x
fn main() -> std::process::ExitCode {
    gpucap_tests::main(vec![])
}
