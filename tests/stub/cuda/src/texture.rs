//! Texture and surface objects: descriptions of memory that kernels read through.
//!
//! They take no memory of the card, and no kernel here reads anything: what a client
//! gave is kept and told again. An object belongs to no context, and does not keep what
//! it describes.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::state::Table;
use gpucap_abi::cuda::{CUdevice, CuError, CuResult};

exports! {
    /// The resource must be of a known type.
    fn cuTexObjectCreate(object: *mut u64, resource: *const Resource, texture: *const Texture,
        view: *const View) => create_texture, context, "cuTexObjectCreate" @ 5000;
    fn cuTexObjectDestroy(object: u64) => destroy_texture, context, "cuTexObjectDestroy" @ 5000;
    fn cuTexObjectGetResourceDesc(resource: *mut Resource, object: u64)
        => texture_resource, driver, "cuTexObjectGetResourceDesc" @ 5000;
    /// INVALID_VALUE for an object without a view.
    fn cuTexObjectGetResourceViewDesc(view: *mut View, object: u64)
        => texture_view, driver, "cuTexObjectGetResourceViewDesc" @ 5000;
    fn cuTexObjectGetTextureDesc(texture: *mut Texture, object: u64)
        => texture_texture, driver, "cuTexObjectGetTextureDesc" @ 5000;
    /// The resource must be an array.
    fn cuSurfObjectCreate(object: *mut u64, resource: *const Resource)
        => create_surface, context, "cuSurfObjectCreate" @ 5000;
    fn cuSurfObjectDestroy(object: u64) => destroy_surface, context, "cuSurfObjectDestroy" @ 5000;
    fn cuSurfObjectGetResourceDesc(resource: *mut Resource, object: u64)
        => surface_resource, driver, "cuSurfObjectGetResourceDesc" @ 5000;
    /// As the attribute of the device says.
    fn cuDeviceGetTexture1DLinearMaxWidth(elements: *mut usize, format: i32, channels: u32,
        device: CUdevice)
        => linear_width, driver, "cuDeviceGetTexture1DLinearMaxWidth" @ 11010;
}

/// `CUDA_RESOURCE_DESC`: the type, what it is, flags.
type Resource = [u64; 18];
/// `CUDA_TEXTURE_DESC`
type Texture = [u64; 13];
/// `CUDA_RESOURCE_VIEW_DESC`
type View = [u64; 14];

/// What a texture object was made with.
pub(crate) struct TextureObject {
    resource: Resource,
    texture: Texture,
    view: Option<View>,
}

/// The texture and surface objects of the process.
#[derive(Default)]
pub(crate) struct Textures {
    textures: Table<TextureObject>,
    surfaces: Table<Resource>,
}

/// `CU_RESOURCE_TYPE_PITCH2D`, the last.
const LAST_RESOURCE: u64 = 3;
/// `CU_RESOURCE_TYPE_ARRAY`
const ARRAY: u64 = 0;

/// A resource of a known type that has an address or a handle.
fn checked(resource: In<Resource>) -> Result<Resource, CuError> {
    let asked = resource.get()?;
    let known = asked[0] & 0xffff_ffff <= LAST_RESOURCE && asked[1] != 0;
    if known { Ok(asked) } else { Err(CuError::INVALID_VALUE) }
}

fn create_texture(
    object: Out<u64>,
    resource: In<Resource>,
    texture: In<Texture>,
    view: In<View>,
) -> CuResult {
    object.required()?;
    let (resource, texture) = (checked(resource)?, texture.get()?);
    let view = if view.is_null() { None } else { Some(view.get()?) };
    object.put(state()?.textures.textures.add(TextureObject { resource, texture, view }))
}

fn destroy_texture(object: u64) -> CuResult {
    state()?.textures.textures.remove(object).map(drop).ok_or(CuError::INVALID_VALUE)
}

fn of_texture<T>(object: u64, f: impl FnOnce(&TextureObject) -> T) -> Result<T, CuError> {
    state()?.textures.textures.get(object).map(f).ok_or(CuError::INVALID_VALUE)
}

fn texture_resource(resource: Out<Resource>, object: u64) -> CuResult {
    resource.put(of_texture(object, |found| found.resource)?)
}

fn texture_view(view: Out<View>, object: u64) -> CuResult {
    view.put(of_texture(object, |found| found.view)?.ok_or(CuError::INVALID_VALUE)?)
}

fn texture_texture(texture: Out<Texture>, object: u64) -> CuResult {
    texture.put(of_texture(object, |found| found.texture)?)
}

fn create_surface(object: Out<u64>, resource: In<Resource>) -> CuResult {
    object.required()?;
    let resource = checked(resource)?;
    if resource[0] & 0xffff_ffff != ARRAY {
        return Err(CuError::INVALID_VALUE);
    }
    object.put(state()?.textures.surfaces.add(resource))
}

fn destroy_surface(object: u64) -> CuResult {
    state()?.textures.surfaces.remove(object).map(drop).ok_or(CuError::INVALID_VALUE)
}

fn surface_resource(resource: Out<Resource>, object: u64) -> CuResult {
    resource.put(*state()?.textures.surfaces.get(object).ok_or(CuError::INVALID_VALUE)?)
}

fn linear_width(elements: Out<usize>, _format: i32, channels: u32, device: CUdevice) -> CuResult {
    crate::driver::unit(device)?;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(CuError::INVALID_VALUE);
    }
    elements.put(1 << 28)
}
