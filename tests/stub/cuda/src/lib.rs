//! Stub `libcuda.so.1` over the simulated card.
//!
//! Right where the real driver is: which names exist and since when, what a call returns for
//! arguments good and bad, what memory costs and when it comes back, how work waits in streams. One
//! file per CUDA noun; each lists its functions as rows ([`export`]) and implements them below. The
//! card itself, and the table of environment variables, is
//! `gpucap-stub-device`. Functions named `stub...` exist for tests only.
//!
//! Where it simplifies, the file of the noun says so.

mod arena;
mod arg;
mod array;
mod attribute;
mod capture;
mod capture_info;
mod capture_mode;
mod context;
mod context_end;
mod copy;
mod copy_attributed;
mod copy_described;
mod current;
mod device;
mod driver;
mod event;
mod export;
mod facts;
mod for_tests;
mod function_facts;
mod getproc;
mod graph;
mod graph_child;
mod graph_edge;
mod graph_exec;
mod graph_exec_node;
mod graph_kernel;
mod graph_node;
mod graph_params;
mod green;
mod host;
mod host_function;
mod init;
mod ipc;
mod launch;
mod library;
mod link;
mod load;
mod memop;
mod memory;
mod module;
mod multicast;
mod pointer;
mod pool;
mod pool_attribute;
mod pool_of_device;
mod refused;
mod reserve;
mod rows;
mod semaphore;
mod set;
mod share;
mod share_pool;
mod sparse;
mod state;
mod stream;
mod stream_facts;
mod tensor_map;
mod texture;
mod texture_reference;
mod user_object;
mod vmm;

/// Every exported function.
const ALL_ROWS: &[&[export::Row]] = &[
    init::ROWS,
    getproc::ROWS,
    device::ROWS,
    context::ROWS,
    current::ROWS,
    memory::ROWS,
    pool::ROWS,
    pool_of_device::ROWS,
    vmm::ROWS,
    share::ROWS,
    share_pool::ROWS,
    multicast::ROWS,
    sparse::ROWS,
    array::ROWS,
    stream::ROWS,
    stream_facts::ROWS,
    event::ROWS,
    host_function::ROWS,
    memop::ROWS,
    semaphore::ROWS,
    capture::ROWS,
    capture_info::ROWS,
    capture_mode::ROWS,
    module::ROWS,
    library::ROWS,
    launch::ROWS,
    graph::ROWS,
    graph_node::ROWS,
    graph_kernel::ROWS,
    graph_exec::ROWS,
    copy::ROWS,
    copy_attributed::ROWS,
    copy_described::ROWS,
    set::ROWS,
    host::ROWS,
    pointer::ROWS,
    ipc::ROWS,
    green::ROWS,
    attribute::ROWS,
    facts::ROWS,
    function_facts::ROWS,
    graph_child::ROWS,
    graph_edge::ROWS,
    graph_exec_node::ROWS,
    graph_params::ROWS,
    link::ROWS,
    tensor_map::ROWS,
    texture::ROWS,
    texture_reference::ROWS,
    user_object::ROWS,
    refused::ROWS,
];
