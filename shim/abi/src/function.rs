//! Functions of the driver that a program looks up by name, with their types.
//!
//! A look-up gives an address without a type. [`functions!`](crate::functions) declares both at once: each row makes a
//! type that stands for one function, and a look-up by this type gives a pointer of the documented signature.
//! So the promise about a signature is made where it is written down, and nowhere else.

/// A function of the driver.
///
/// # Safety
/// `Type` is the type of a pointer to the function that the driver exports as `NAME`, as NVIDIA documents it.
pub unsafe trait Function {
    /// The type of a pointer to it.
    type Type: Copy + 'static;
    /// Its name.
    const NAME: &'static str;
}

/// Names functions of the driver, each with the signature that NVIDIA documents for it.
#[macro_export]
macro_rules! functions {
    ($(fn $name:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {$(
        #[allow(non_camel_case_types, reason = "named as the function is")]
        enum $name {}
        // SAFETY: a row of the table has the documented type of this name.
        unsafe impl $crate::function::Function for $name {
            type Type = unsafe extern "C" fn($($argument),*) -> $result;
            const NAME: &'static str = stringify!($name);
        }
    )*};
}
