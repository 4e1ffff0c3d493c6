"""Kernels that XLA's compiler made for a GPU, played on this CPU: its LLVM IR, compiled for the CPU, thread after thread.

The IR is what the compiler hands to NVIDIA's assembler, before registers and machine instructions. So what is played is every operation
and its order; what is not are the GPU's approximate root and power of two (exact here), and the assembler's choice where to fuse a
multiplication and an addition.
"""

import ctypes
import re
import struct
from collections.abc import Sequence

import llvmlite.binding as llvm

THREADS = 1024  # the most in a block
EVENTS = 64  # the most exchanges between the threads of a block
WARP = 32

# What the IR may ask of a GPU, for one thread at a time. @thread, @block and @event say which thread runs, in which block, and how often it
# has waited for others. A thread that asks another for a number finds on the @board what that one said when the block was last played.
GPU = f"""
@thread = global i32 0
@block = global i32 0
@event = global i32 0
@events = global i32 0
@board = global [{EVENTS * THREADS} x i32] zeroinitializer
declare float @llvm.fabs.f32(float)
declare float @llvm.sqrt.f32(float)
declare float @llvm.exp2.f32(float)
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)

define i32 @nvvm.read.ptx.sreg.tid.x() {{
  %i = load i32, ptr @thread
  ret i32 %i
}}
define i32 @nvvm.read.ptx.sreg.ctaid.x() {{
  %i = load i32, ptr @block
  ret i32 %i
}}
define void @nvvm.griddepcontrol.wait() {{
  ret void
}}
define void @nvvm.griddepcontrol.launch.dependents() {{
  ret void
}}
define i32 @next_event() {{
  %e = load i32, ptr @event
  %next = add i32 %e, 1
  store i32 %next, ptr @event
  %most = load i32, ptr @events
  %more = icmp ugt i32 %next, %most
  %now = select i1 %more, i32 %next, i32 %most
  store i32 %now, ptr @events
  ret i32 %e
}}
define void @nvvm.barrier.cta.sync.aligned.all(i32 %which) {{
  %e = call i32 @next_event()
  ret void
}}
define i32 @nvvm.shfl.sync.down.i32(i32 %mask, i32 %value, i32 %offset, i32 %clamp) {{
  %e = call i32 @next_event()
  %me = load i32, ptr @thread
  %start = mul i32 %e, {THREADS}
  %mine = add i32 %start, %me
  %here = getelementptr i32, ptr @board, i32 %mine
  store i32 %value, ptr %here
  %lane = and i32 %me, {WARP - 1}
  %wanted = add i32 %lane, %offset
  %beyond = icmp uge i32 %wanted, {WARP}
  %step = select i1 %beyond, i32 0, i32 %offset
  %theirs = add i32 %mine, %step
  %there = getelementptr i32, ptr @board, i32 %theirs
  %said = load i32, ptr %there
  ret i32 %said
}}
define float @nvvm.shfl.sync.down.f32(i32 %mask, float %value, i32 %offset, i32 %clamp) {{
  %bits = bitcast float %value to i32
  %said = call i32 @nvvm.shfl.sync.down.i32(i32 %mask, i32 %bits, i32 %offset, i32 %clamp)
  %number = bitcast i32 %said to float
  ret float %number
}}
define float @nvvm.fabs.f32(float %x) {{
  %y = call float @llvm.fabs.f32(float %x)
  ret float %y
}}
define float @nvvm.sqrt.approx.f(float %x) {{
  %y = call float @llvm.sqrt.f32(float %x)
  ret float %y
}}
define float @nvvm.ex2.approx.ftz.f32(float %x) {{
  %y = call float @llvm.exp2.f32(float %x)
  ret float %y
}}
define float @nvvm.saturate.f(float %x) {{
  %positive = fcmp ogt float %x, 0.0
  %low = select i1 %positive, float %x, float 0.0
  %large = fcmp ogt float %low, 1.0
  %y = select i1 %large, float 1.0, float %low
  ret float %y
}}
define float @nvvm.add.rz.f(float %a, float %b) {{
  %x = fpext float %a to double
  %y = fpext float %b to double
  %exact = fadd double %x, %y
  %nearest = fptrunc double %exact to float
  %back = fpext float %nearest to double
  %size = call double @llvm.fabs.f64(double %exact)
  %rounded = call double @llvm.fabs.f64(double %back)
  %away = fcmp ogt double %rounded, %size
  %bits = bitcast float %nearest to i32
  %less = sub i32 %bits, 1
  %chosen = select i1 %away, i32 %less, i32 %bits
  %z = bitcast i32 %chosen to float
  ret float %z
}}
define float @nvvm.fma.rm.f(float %a, float %b, float %c) {{
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %exact = call double @llvm.fma.f64(double %x, double %y, double %z)
  %nearest = fptrunc double %exact to float
  %back = fpext float %nearest to double
  %above = fcmp ogt double %back, %exact
  %bits = bitcast float %nearest to i32
  %negative = icmp slt i32 %bits, 0
  %step = select i1 %negative, i32 1, i32 -1
  %moved = add i32 %bits, %step
  %chosen = select i1 %above, i32 %moved, i32 %bits
  %w = bitcast i32 %chosen to float
  ret float %w
}}
"""
# Plays the blocks of a kernel, and the threads of each, one after the other. Where threads exchange numbers, a block is played once
# more than a thread waits for others: after the n-th time all that was said up to the n-th exchange is right.
DRIVE = """
define void @drive({parameters}, i32 %blocks, i32 %threads) {{
entry:
  store i32 0, ptr @events
  br label %block
block:
  %b = phi i32 [0, %entry], [%b.next, %block.done]
  store i32 %b, ptr @block
  br label %pass
pass:
  %p = phi i32 [0, %block], [%p.next, %pass.done]
  br label %thread
thread:
  %t = phi i32 [0, %pass], [%t.next, %thread]
  store i32 %t, ptr @thread
  store i32 0, ptr @event
  call void @{name}({arguments})
  %t.next = add i32 %t, 1
  %t.more = icmp ult i32 %t.next, %threads
  br i1 %t.more, label %thread, label %pass.done
pass.done:
  %p.next = add i32 %p, 1
  %most = load i32, ptr @events
  %p.more = icmp ule i32 %p.next, %most
  br i1 %p.more, label %pass, label %block.done
block.done:
  %b.next = add i32 %b, 1
  %b.more = icmp ult i32 %b.next, %blocks
  br i1 %b.more, label %block, label %done
done:
  ret void
}}
"""


class NoEmulation(NotImplementedError):
    """A kernel asks for something of a GPU that is not played here."""


def _as_double(value: float) -> str:
    """A float32 as LLVM's older notation has it: the bits of the same number as a double."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _quiet_nan(negative: bool, payload: int) -> str:
    """The same for what is not a number, with all its bits: a whole number may stand in the place of a float32."""
    return f"0x{negative << 63 | 0x7FF << 52 | (1 << 22 | payload) << 29:016X}"


def _rounded(text: str) -> float:
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def for_this_cpu(text: str) -> str:
    """The IR of a kernel with calls of :data:`GPU` in place of what only a GPU has, in a notation that llvmlite's LLVM reads."""
    if re.search(r"\bdouble\b", text):
        raise NoEmulation("a kernel in double precision")
    text = re.sub(r"^(target|attributes|source_filename).*\n", "", text, flags=re.M)
    text = re.sub(r" #\d+", "", text).replace("ptx_kernel ", "")
    # Newer notations of numbers.
    text = re.sub(
        r"\bf0x([0-9A-Fa-f]{8})\b", lambda m: _as_double(struct.unpack("<f", struct.pack("<I", int(m[1], 16)))[0]), text
    )
    text = re.sub(r"(?<=[ (,])-?\d+\.\d+(?:e[+-]\d+)?(?=[,\s)\]>])", lambda m: _as_double(_rounded(m[0])), text)
    text = re.sub(r"(?<=float )([+-])nan\(0x([0-9A-Fa-f]+)\)", lambda m: _quiet_nan(m[1] == "-", int(m[2], 16)), text)
    for word, value in (("-inf", "-inf"), (r"\+inf", "inf"), (r"\+q?nan", "nan")):
        text = re.sub(rf"(?<=float ){word}\b", _as_double(float(value)), text)
    # What only a GPU has.
    text = re.sub(r"^declare [^\n]*@llvm\.nvvm\.[^\n]*\n", "", text, flags=re.M).replace("@llvm.nvvm.", "@nvvm.")
    declared = re.findall(r"^declare [^\n]*?@([\w.]+)\(", GPU, flags=re.M)
    text = re.sub(rf"^declare [^\n]*@({'|'.join(map(re.escape, declared))})\([^\n]*\n", "", text, flags=re.M)
    unknown = set(re.findall(r"@(nvvm\.[\w.]+|__nv_\w+)", text)) - set(re.findall(r"^define [^\n]*?@([\w.]+)\(", GPU, flags=re.M))
    if unknown:
        raise NoEmulation(f"a kernel calls {', '.join(sorted(unknown))}")
    if "@nvvm.shfl" in text and "atomicrmw" in text:
        raise NoEmulation("threads exchange numbers and add to memory at once")
    return text + GPU


class Kernel:
    """One kernel of a GPU as a function on this CPU."""

    def __init__(self, text: str, name: str):
        text = for_this_cpu(text)
        signature = re.search(rf"define void @{re.escape(name)}\((.*)", text)
        assert signature is not None
        self.count = len(re.findall(r"\bptr ", signature[1]))
        pointers = ", ".join(f"ptr %a{index}" for index in range(self.count))
        text += DRIVE.format(parameters=pointers, arguments=pointers, name=name)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(text)
        module.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(llvm.get_host_cpu_name(), features, opt=2)
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * self.count, ctypes.c_int32, ctypes.c_int32)
        self.play = signature(self.engine.get_function_address("drive"))

    def __call__(self, addresses: Sequence[int], blocks: int, threads: int) -> None:
        if len(addresses) != self.count:
            raise NoEmulation(f"a kernel of {self.count} arguments is given {len(addresses)}")
        self.play(*addresses, blocks, threads)
