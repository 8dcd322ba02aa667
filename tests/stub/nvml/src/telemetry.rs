//! Temperatures, clocks, power, modes: constants that make the tools' tables complete.

use crate::device::unit;
use crate::export::{Out, exports};
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t};
use std::ffi::c_char;

exports! {
    /// 35 degrees, whatever the sensor.
    fn nvmlDeviceGetTemperature(device: nvmlDevice_t, sensor: u32, degrees: *mut u32)
        => temperature, library;
    /// 90 degrees, whatever the threshold.
    fn nvmlDeviceGetTemperatureThreshold(device: nvmlDevice_t, kind: u32, degrees: *mut u32)
        => temperature_threshold, library;
    /// 50 W in mW.
    fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, milliwatts: *mut u32) => power, library;
    /// 300 W in mW.
    fn nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, milliwatts: *mut u32)
        => power_limit, library;
    /// 300 W in mW.
    fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, milliwatts: *mut u32)
        => power_limit, library;
    /// 300 W in mW.
    fn nvmlDeviceGetPowerManagementDefaultLimit(device: nvmlDevice_t, milliwatts: *mut u32)
        => power_limit, library;
    /// 300 W in mW, both.
    fn nvmlDeviceGetPowerManagementLimitConstraints(device: nvmlDevice_t, least: *mut u32,
        most: *mut u32) => power_limits, library;
    /// Zero.
    fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, millijoules: *mut u64)
        => energy, library;
    /// Off.
    fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: *mut u32) => zero, library;
    /// Off.
    fn nvmlDeviceGetDisplayActive(device: nvmlDevice_t, mode: *mut u32) => zero, library;
    /// Off.
    fn nvmlDeviceGetDisplayMode(device: nvmlDevice_t, mode: *mut u32) => zero, library;
    /// P0.
    fn nvmlDeviceGetPerformanceState(device: nvmlDevice_t, state: *mut u32) => zero, library;
    /// Default.
    fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: *mut u32) => zero, library;
    /// None.
    fn nvmlDeviceGetVirtualizationMode(device: nvmlDevice_t, mode: *mut u32) => zero, library;
    /// No.
    fn nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multi: *mut u32) => zero, library;
    /// Unknown.
    fn nvmlDeviceGetBrand(device: nvmlDevice_t, brand: *mut u32) => zero, library;
    /// Ampere.
    fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, architecture: *mut u32)
        => architecture, library;
    /// Its bus number.
    fn nvmlDeviceGetBoardId(device: nvmlDevice_t, board: *mut u32) => board, library;
    /// On, and stays on.
    fn nvmlDeviceGetEccMode(device: nvmlDevice_t, current: *mut u32, pending: *mut u32)
        => ecc, library;
    /// Idle, sampled over 1/6 s.
    fn nvmlDeviceGetEncoderUtilization(device: nvmlDevice_t, busy: *mut u32, period: *mut u32)
        => idle, library;
    /// Idle, sampled over 1/6 s.
    fn nvmlDeviceGetDecoderUtilization(device: nvmlDevice_t, busy: *mut u32, period: *mut u32)
        => idle, library;
    /// 1410 MHz, whatever the clock.
    fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: u32, megahertz: *mut u32)
        => clock, library;
    /// 1410 MHz, whatever the clock.
    fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, kind: u32, megahertz: *mut u32)
        => clock, library;
    /// Generation 4.
    fn nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, generation: *mut u32)
        => generation, library;
    /// Generation 4.
    fn nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, generation: *mut u32)
        => generation, library;
    /// 16 lanes.
    fn nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, lanes: *mut u32) => lanes, library;
    /// 16 lanes.
    fn nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, lanes: *mut u32) => lanes, library;
    /// Nothing moves.
    fn nvmlDeviceGetPcieThroughput(device: nvmlDevice_t, direction: u32, kilobytes: *mut u32)
        => throughput, library;
    /// It is valid.
    fn nvmlDeviceValidateInforom(device: nvmlDevice_t) => valid, library;
    /// A number made from the index.
    fn nvmlDeviceGetSerial(device: nvmlDevice_t, serial: *mut c_char, length: u32)
        => serial, library;
    /// No field is known: each says so in its own place.
    fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, count: i32, values: *mut FieldValue)
        => fields, library;
}

/// `nvmlFieldValue_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct FieldValue {
    id: u32,
    scope: u32,
    time: i64,
    latency: i64,
    kind: u32,
    answer: u32,
    value: u64,
}
const _: () = assert!(size_of::<FieldValue>() == 40);

fn constant<T: Copy>(device: nvmlDevice_t, out: Out<T>, value: T) -> NvmlResult {
    unit(device)?;
    out.put(value)
}

fn temperature(device: nvmlDevice_t, _sensor: u32, degrees: Out<u32>) -> NvmlResult {
    constant(device, degrees, 35)
}

fn temperature_threshold(device: nvmlDevice_t, _kind: u32, degrees: Out<u32>) -> NvmlResult {
    constant(device, degrees, 90)
}

fn power(device: nvmlDevice_t, milliwatts: Out<u32>) -> NvmlResult {
    constant(device, milliwatts, 50_000)
}

fn power_limit(device: nvmlDevice_t, milliwatts: Out<u32>) -> NvmlResult {
    constant(device, milliwatts, 300_000)
}

fn power_limits(device: nvmlDevice_t, least: Out<u32>, most: Out<u32>) -> NvmlResult {
    power_limit(device, least)?;
    power_limit(device, most)
}

fn energy(device: nvmlDevice_t, millijoules: Out<u64>) -> NvmlResult {
    constant(device, millijoules, 0)
}

fn zero(device: nvmlDevice_t, out: Out<u32>) -> NvmlResult {
    constant(device, out, 0)
}

fn architecture(device: nvmlDevice_t, architecture: Out<u32>) -> NvmlResult {
    constant(device, architecture, 7)
}

fn board(device: nvmlDevice_t, board: Out<u32>) -> NvmlResult {
    constant(device, board, unit(device)?.bus())
}

fn ecc(device: nvmlDevice_t, current: Out<u32>, pending: Out<u32>) -> NvmlResult {
    constant(device, current, 1)?;
    constant(device, pending, 1)
}

fn idle(device: nvmlDevice_t, busy: Out<u32>, period: Out<u32>) -> NvmlResult {
    constant(device, busy, 0)?;
    constant(device, period, 166_666)
}

fn clock(device: nvmlDevice_t, _kind: u32, megahertz: Out<u32>) -> NvmlResult {
    constant(device, megahertz, 1410)
}

fn generation(device: nvmlDevice_t, generation: Out<u32>) -> NvmlResult {
    constant(device, generation, 4)
}

fn lanes(device: nvmlDevice_t, lanes: Out<u32>) -> NvmlResult {
    constant(device, lanes, 16)
}

fn throughput(device: nvmlDevice_t, _direction: u32, kilobytes: Out<u32>) -> NvmlResult {
    constant(device, kilobytes, 0)
}

fn valid(device: nvmlDevice_t) -> NvmlResult {
    unit(device).map(drop)
}

fn serial(device: nvmlDevice_t, serial: Out<c_char>, length: u32) -> NvmlResult {
    crate::init::put_text(serial, length, &format!("{:013}", unit(device)?.bus()))
}

fn fields(device: nvmlDevice_t, count: i32, values: Out<FieldValue>) -> NvmlResult {
    unit(device)?;
    for index in 0..usize::try_from(count).map_err(|_| NvmlError::INVALID_ARGUMENT)? {
        let asked = values.at(index).get()?;
        values.at(index).put(FieldValue { answer: NvmlError::NOT_SUPPORTED.code(), ..asked })?;
    }
    Ok(())
}
