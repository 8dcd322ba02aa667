//! What a table says of one function, as text: the consumer of the rows, and C's spelling of their types.

/// One intercepted function.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Exported name.
    pub(crate) symbol: &'static str,
    /// Names and types of its arguments, the types as Rust has them.
    pub(crate) arguments: Vec<(&'static str, &'static str)>,
    /// The file of its handler, below the handlers of the library.
    pub(crate) module: &'static str,
    /// The handler.
    pub(crate) handler: &'static str,
    /// What it does to a limit, in one word.
    pub(crate) class: &'static str,
    /// What `cuGetProcAddress` knows it by.
    pub(crate) asked: Option<Asked>,
    /// The lines of its documentation.
    pub(crate) doc: &'static [&'static str],
}

/// What `cuGetProcAddress` answers with a function.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) base: &'static str,
    /// 1000 x major + 10 x minor.
    pub(crate) since: u32,
    /// `ptsz`: for callers that ask for per-thread default streams.
    pub(crate) stream: Option<&'static str>,
}

macro_rules! list {
    ($name:ident; $(
        $(#[doc = $doc:expr])*
        fn $symbol:ident($($argument:ident: $type:ty),* $(,)?)
            => $module:ident::$handler:ident, $class:ident $(, $base:literal @ $since:literal $($stream:ident)?)?;
    )*) => {
        pub(crate) fn $name() -> Vec<Row> {
            vec![$(Row {
                symbol: stringify!($symbol),
                arguments: vec![$((stringify!($argument), stringify!($type))),*],
                module: stringify!($module),
                handler: stringify!($handler),
                class: stringify!($class),
                asked: [$(
                    Asked { base: $base, since: $since, stream: [$(stringify!($stream))?].first().copied() }
                )?].into_iter().next(),
                doc: &[$($doc),*],
            }),*]
        }
    };
}

macro_rules! cuda_rows {
    ($($rows:tt)*) => { list! { cuda; $($rows)* } };
}
gpucap_abi::cuda_api!(cuda_rows);

macro_rules! nvml_rows {
    ($($rows:tt)*) => { list! { nvml; $($rows)* } };
}
gpucap_abi::nvml_api!(nvml_rows);

impl Row {
    /// What happens to the limit.
    pub(crate) fn text(&self) -> String {
        self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }

    /// The declaration in C, in lines of at most 100 signs.
    pub(crate) fn signature(&self, result: &str) -> String {
        let mut text = format!("{result} {}(", self.symbol);
        let mut line = text.len();
        let last = self.arguments.len().saturating_sub(1);
        for (index, (name, kind)) in self.arguments.iter().enumerate() {
            let argument =
                format!("{}{}", declared(kind, name), if index < last { "," } else { ");" });
            if line + argument.len() + 1 > 100 {
                text.push_str("\n    ");
                line = 4;
            } else if index > 0 {
                text.push(' ');
                line += 1;
            }
            text.push_str(&argument);
            line += argument.len();
        }
        if self.arguments.is_empty() {
            text.push_str("void);");
        }
        text
    }
}

/// A parameter in C. The compiler may have put a space around any sign of the type.
fn declared(kind: &str, name: &str) -> String {
    let (mut rest, mut stars, mut constant) = (kind.trim(), String::new(), "");
    loop {
        let star = rest.strip_prefix('*').map(str::trim_start);
        rest = if let Some(inner) = star.and_then(|inner| inner.strip_prefix("mut")) {
            inner.trim_start()
        } else if let Some(inner) = star.and_then(|inner| inner.strip_prefix("const")) {
            constant = "const ";
            inner.trim_start()
        } else if let Some((form, inner)) = rest.split_once('<') {
            // InOut<T>, Array<T>, List<T>, ConstList<T>: what the handler may do with a pointer to T.
            constant = if form.trim_end().ends_with("ConstList") { "const " } else { constant };
            inner.trim_end_matches(['>', ' '])
        } else {
            break;
        };
        stars.push('*');
    }
    let plain = match rest.rsplit("::").next().unwrap_or(rest).trim() {
        "c_void" => "void",
        "c_char" => "char",
        "c_int" | "i32" => "int",
        "c_uint" | "u32" => "unsigned int",
        "i64" => "long long",
        "u64" => "unsigned long long",
        "usize" => "size_t",
        "u8" => "unsigned char",
        "u16" => "unsigned short",
        other => other,
    };
    format!("{constant}{plain} {stars}{name}")
}
