package ptx

// Class is a kind of instruction, for counting.
type Class uint8

// The classes.
const (
	ClassOther Class = iota
	ClassFloat32
	ClassFloat64
	ClassHalf
	ClassInteger
	ClassConvert
	ClassMove
	ClassSpecial
	ClassLoad
	ClassStore
	ClassAtomic
	ClassCopy
	ClassShuffle
	ClassTensor
	ClassSync
	ClassControl
	Classes // how many there are
)

var classNames = [Classes]string{"other", "float32", "float64", "half", "integer", "convert", "move", "special function", "load", "store",
	"atomic", "async copy", "shuffle", "tensor", "sync", "control"}

// String is what people read.
func (c Class) String() string { return classNames[c] }

var classOf = map[string]Class{"mov": ClassMove, "cvta": ClassMove, "selp": ClassMove, "slct": ClassMove, "cvt": ClassConvert,
	"ex2": ClassSpecial, "lg2": ClassSpecial, "sin": ClassSpecial, "cos": ClassSpecial, "tanh": ClassSpecial, "rsqrt": ClassSpecial,
	"ld": ClassLoad, "ldu": ClassLoad, "ldmatrix": ClassLoad, "st": ClassStore, "atom": ClassAtomic, "red": ClassAtomic, "cp": ClassCopy,
	"shfl": ClassShuffle, "vote": ClassShuffle, "match": ClassShuffle, "redux": ClassShuffle, "movmatrix": ClassShuffle, "mma": ClassTensor,
	"stmatrix": ClassStore, "wgmma": ClassTensor, "elect": ClassShuffle, "mapa": ClassMove, "getctarank": ClassMove, "setmaxnreg": ClassControl,
	"griddepcontrol": ClassSync, "tensormap": ClassStore,
	"bar": ClassSync, "mbarrier": ClassSync, "wmma": ClassTensor, "barrier": ClassSync, "membar": ClassSync, "fence": ClassSync,
	"bra": ClassControl, "brx": ClassControl, "exit": ClassControl, "trap": ClassControl, "call": ClassControl}

// Class counts arithmetic by type and the rest by opcode.
func (in *Inst) Class() Class {
	if c, ok := classOf[in.Op]; ok {
		return c
	}
	switch t := in.Type(); {
	case (in.Op == "rcp" || in.Op == "sqrt") && in.Has("approx"):
		return ClassSpecial
	case t == F32:
		return ClassFloat32
	case t == F64:
		return ClassFloat64
	case t.Kind() == KindFloat:
		return ClassHalf
	case t != NoType:
		return ClassInteger
	}
	return ClassOther
}
