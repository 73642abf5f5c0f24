package ptx

import (
	"strconv"
	"strings"
)

// Pipe is the part of a multiprocessor that carries an instruction out.
type Pipe uint8

// The pipes. What vanishes when ptxas is done, such as a move or a load of a parameter, is of PipeNone.
const (
	PipeNone Pipe = iota
	PipeFloat32
	PipeInteger // and comparisons, selections
	PipeFloat64
	PipeHalf
	PipeSpecial
	PipeConvert
	PipeShuffle
	PipeMemory
	PipeTensor
	PipeControl // branches and barriers
	Pipes       // how many there are
)

var pipeNames = [Pipes]string{"none", "float32", "integer", "float64", "half", "special functions", "conversions", "shuffles", "accesses", "tensor", "control"}

// String is what people read.
func (p Pipe) String() string { return pipeNames[p] }

// expansions are the machine instructions that ptxas makes of those that the machine lacks, roughly: by opcode, with the type or
// "approx" behind it.
var expansions = map[string]uint32{"div.f32": 10, "div.approx": 2, "sqrt.f32": 8, "rcp.f32": 7, "div.f64": 20, "sqrt.f64": 18, "rcp.f64": 15,
	"div.b32": 20, "rem.b32": 22, "div.b64": 75, "rem.b64": 78, "mul.b64": 4, "mad.b64": 4, "sin.approx": 2, "cos.approx": 2}

// wholePipes are the pipes of opcodes that have one whatever the type.
var wholePipes = map[string]Pipe{"mov": PipeNone, "cvta": PipeNone, "bra": PipeControl, "brx": PipeControl, "exit": PipeControl, "ret": PipeControl,
	"call": PipeNone, "trap": PipeControl, "bar": PipeControl, "barrier": PipeControl, "mbarrier": PipeMemory, "membar": PipeControl, "fence": PipeControl,
	"shfl": PipeShuffle, "vote": PipeShuffle, "match": PipeShuffle, "redux": PipeShuffle, "movmatrix": PipeShuffle, "activemask": PipeShuffle,
	"mma": PipeTensor, "ldmatrix": PipeMemory, "stmatrix": PipeMemory, "ldu": PipeMemory, "st": PipeMemory, "atom": PipeMemory, "red": PipeMemory,
	"ex2": PipeSpecial, "lg2": PipeSpecial, "sin": PipeSpecial, "cos": PipeSpecial, "tanh": PipeSpecial, "rsqrt": PipeSpecial,
	"popc": PipeSpecial, "clz": PipeSpecial, "bfind": PipeSpecial, "brev": PipeSpecial}

// Pipe is where a multiprocessor carries the instruction out, and about how many machine instructions it is.
func (in *Inst) Pipe() (p Pipe, n uint32) {
	if p, ok := wholePipes[in.Op]; ok {
		if p == PipeNone {
			return p, 0
		}
		return p, in.expanded()
	}
	switch in.Op {
	case "ld":
		if in.Space() == Param {
			return PipeNone, 0
		}
		return PipeMemory, 1
	case "cp": // but for what ends groups and waits
		if in.Space() == Generic {
			return PipeControl, 1
		}
		return PipeMemory, 1
	case "wgmma":
		if in.Has("mma_async") {
			return PipeTensor, 1
		}
		return PipeControl, 1
	case "wmma":
		if in.Has("mma") {
			return PipeTensor, 2
		}
		return PipeMemory, 2
	case "cvt":
		return in.conversion(), 1
	case "neg", "abs": // part of the instruction that reads them
		if in.Type().Kind() == KindFloat {
			return PipeNone, 0
		}
	}
	return in.arithmetic(), in.expanded()
}

// conversion is the pipe of a cvt: those between integers are moves and shifts, those between floats of up to 32 bits too.
func (in *Inst) conversion() Pipe {
	ts := in.Types()
	floats := 0
	for _, t := range ts {
		if t.Bits() == 64 && t.Kind() == KindFloat {
			return PipeFloat64
		}
		if t.Kind() == KindFloat {
			floats++
		}
	}
	if floats == 0 || floats == len(ts) {
		return PipeInteger
	}
	return PipeConvert
}

// arithmetic is the pipe by the type of the operands.
func (in *Inst) arithmetic() Pipe {
	t := in.Type()
	if t.Kind() != KindFloat {
		return PipeInteger
	}
	switch in.Op {
	case "setp", "selp", "slct", "set", "min", "max", "copysign", "testp":
		if t != F64 {
			return PipeInteger
		}
	case "rcp", "sqrt":
		if in.Has("approx") {
			return PipeSpecial
		}
	}
	switch t {
	case F32:
		return PipeFloat32
	case F64:
		return PipeFloat64
	}
	return PipeHalf
}

// expanded is about how many machine instructions the instruction is.
func (in *Inst) expanded() uint32 {
	t := in.Type()
	kind := t.String()
	switch {
	case in.Has("approx") || in.Has("full"):
		kind = "approx"
	case t.Kind() != KindFloat:
		kind = "b" + strconv.Itoa(t.Bits())
	}
	if n, ok := expansions[in.Op+"."+kind]; ok && !in.Has("wide") {
		return n
	}
	if kind == "b64" && in.Op != "shfl" && in.Op != "st" && in.Op != "atom" && in.Op != "red" && !in.Has("wide") {
		return 2
	}
	return 1
}

// Tensor is the operations of a warp's instruction of the tensor cores, and the type of its first matrix; 0 of any other. Of
// wgmma a warp has a quarter.
func (in *Inst) Tensor() (operations int, t Type) {
	if in.Op != "mma" && !(in.Op == "wmma" && in.Has("mma")) && !in.Warpgroup() {
		return 0, NoType
	}
	for _, m := range in.Mods {
		if n := shapeVolume(m); n > 0 {
			operations = 2 * n
		}
	}
	if t = F16; len(in.Types()) >= 3 {
		t = in.Types()[1]
	}
	if in.Warpgroup() {
		operations /= 4
	}
	return operations, t
}

// Warpgroup is whether it is a product that four warps make together.
func (in *Inst) Warpgroup() bool { return in.Op == "wgmma" && in.Has("mma_async") }

// shapeVolume is m·n·k of a modifier "m16n8k16"; 0 of any other.
func shapeVolume(mod string) int {
	if !strings.HasPrefix(mod, "m") {
		return 0
	}
	volume := 1
	for _, part := range strings.FieldsFunc(mod, func(r rune) bool { return r == 'm' || r == 'n' || r == 'k' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0
		}
		volume *= n
	}
	return volume
}
