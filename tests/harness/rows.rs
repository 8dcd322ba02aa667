//! The rows of the shim's tables, as names: what a test compares with what it finds in a driver.

/// One intercepted function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Exported name.
    pub symbol: &'static str,
    /// The function of the shim that gives it its meaning.
    pub handler: &'static str,
    /// What it does to a limit.
    pub class: &'static str,
    /// How `cuGetProcAddress` is asked for it; NVML has nothing like it.
    pub asked: Option<Asked>,
}

/// What `cuGetProcAddress` answers with a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The name.
    pub base: &'static str,
    /// The first version.
    pub since: u32,
    /// For callers that ask for per-thread default streams.
    pub per_thread: bool,
}

macro_rules! list {
    ($name:ident, $what:literal; $(
        $(#[$doc:meta])*
        fn $symbol:ident($($argument:ident: $type:ty),* $(,)?)
            => $module:ident::$handler:ident, $class:ident $(, $base:literal @ $since:literal $($stream:ident)?)?;
    )*) => {
        #[doc = $what]
        pub const $name: &[Row] = &[$(Row {
            symbol: stringify!($symbol),
            handler: concat!(stringify!($module), "::", stringify!($handler)),
            class: stringify!($class),
            asked: *[$(Some(Asked {
                base: $base,
                since: $since,
                per_thread: !concat!("" $(, stringify!($stream))?).is_empty(),
            }),)? None].first().unwrap(),
        }),*];
    };
}

macro_rules! cuda {
    ($($rows:tt)*) => { list! { CUDA, "Intercepted functions of libcuda."; $($rows)* } };
}
gpucap_abi::cuda_api!(cuda);

macro_rules! nvml {
    ($($rows:tt)*) => { list! { NVML, "Intercepted functions of libnvidia-ml."; $($rows)* } };
}
gpucap_abi::nvml_api!(nvml);

/// Whether a function of this name is intercepted.
#[must_use]
pub fn has(symbol: &str) -> bool {
    CUDA.iter().chain(NVML).any(|row| row.symbol == symbol)
}
