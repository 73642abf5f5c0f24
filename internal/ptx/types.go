package ptx

// Type is a PTX type. The order is that of typeTable.
type Type uint8

// The types of PTX: memory and register types first, then those that occur only as instruction modifiers.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	F32
	F64
	BF16
	BF16x2
	TF32
	F32x2
	B1
	B4
	U4
	S4
	U2
	S2
	U16x2
	S16x2
	E4M3
	E5M2
	E4M3x2
	E5M2x2
	E2M1
	E2M3
	E3M2
	E2M1x2
	E2M3x2
	E3M2x2
	UE8M0
	UE8M0x2
	UE4M3
	TexRef
	SamplerRef
	SurfRef
)

// Kind is the family of a type: what arithmetic reads its bits as.
type Kind uint8

// The families of types.
const (
	KindBits Kind = iota
	KindPred
	KindUint
	KindInt
	KindFloat
	KindOpaque
)

type typeInfo struct {
	name string
	bits int
	kind Kind
}

var typeTable = [...]typeInfo{
	NoType: {"", 0, KindOpaque},
	Pred:   {"pred", 1, KindPred},
	B8:     {"b8", 8, KindBits}, B16: {"b16", 16, KindBits}, B32: {"b32", 32, KindBits}, B64: {"b64", 64, KindBits}, B128: {"b128", 128, KindBits},
	U8: {"u8", 8, KindUint}, U16: {"u16", 16, KindUint}, U32: {"u32", 32, KindUint}, U64: {"u64", 64, KindUint},
	S8: {"s8", 8, KindInt}, S16: {"s16", 16, KindInt}, S32: {"s32", 32, KindInt}, S64: {"s64", 64, KindInt},
	F16: {"f16", 16, KindFloat}, F16x2: {"f16x2", 32, KindFloat}, F32: {"f32", 32, KindFloat}, F64: {"f64", 64, KindFloat},
	BF16: {"bf16", 16, KindFloat}, BF16x2: {"bf16x2", 32, KindFloat}, TF32: {"tf32", 32, KindFloat}, F32x2: {"f32x2", 64, KindFloat},
	B1: {"b1", 1, KindBits}, B4: {"b4", 4, KindBits}, U4: {"u4", 4, KindUint}, S4: {"s4", 4, KindInt}, U2: {"u2", 2, KindUint}, S2: {"s2", 2, KindInt},
	U16x2: {"u16x2", 32, KindUint}, S16x2: {"s16x2", 32, KindInt},
	E4M3: {"e4m3", 8, KindFloat}, E5M2: {"e5m2", 8, KindFloat}, E4M3x2: {"e4m3x2", 16, KindFloat}, E5M2x2: {"e5m2x2", 16, KindFloat},
	E2M1: {"e2m1", 4, KindFloat}, E2M3: {"e2m3", 6, KindFloat}, E3M2: {"e3m2", 6, KindFloat},
	E2M1x2: {"e2m1x2", 8, KindFloat}, E2M3x2: {"e2m3x2", 16, KindFloat}, E3M2x2: {"e3m2x2", 16, KindFloat},
	UE8M0: {"ue8m0", 8, KindFloat}, UE8M0x2: {"ue8m0x2", 16, KindFloat}, UE4M3: {"ue4m3", 8, KindFloat},
	TexRef: {"texref", 64, KindOpaque}, SamplerRef: {"samplerref", 64, KindOpaque}, SurfRef: {"surfref", 64, KindOpaque},
}

var typeByName = func() map[string]Type {
	m := make(map[string]Type, len(typeTable))
	for t, info := range typeTable {
		if info.name != "" {
			m[info.name] = Type(t)
		}
	}
	return m
}()

// ParseType finds a type by its name without the dot ("f32", "b64"); NoType if there is none.
func ParseType(name string) Type { return typeByName[name] }

// String is the name without the dot.
func (t Type) String() string { return typeTable[t].name }

// Bits is the width in bits; 1 for a predicate.
func (t Type) Bits() int { return typeTable[t].bits }

// Size is the width in bytes, rounded up.
func (t Type) Size() int { return (typeTable[t].bits + 7) / 8 }

// Kind is the family of the type.
func (t Type) Kind() Kind { return typeTable[t].kind }

// Space is a state space of PTX.
type Space uint8

// The state spaces. SharedCluster and ParamEntry occur in instructions only.
const (
	Generic Space = iota
	RegSpace
	SRegSpace
	ConstSpace
	Global
	Local
	Param
	Shared
	SharedCluster
	Tex
)

var spaceNames = [...]string{Generic: "", RegSpace: "reg", SRegSpace: "sreg", ConstSpace: "const", Global: "global", Local: "local",
	Param: "param", Shared: "shared", SharedCluster: "shared::cluster", Tex: "tex"}

// String is the name without the dot, empty for generic.
func (s Space) String() string { return spaceNames[s] }

// spaceOf reads a state space modifier of an instruction or a declaration.
func spaceOf(mod string) (Space, bool) {
	switch mod {
	case "const":
		return ConstSpace, true
	case "global":
		return Global, true
	case "local":
		return Local, true
	case "param", "param::entry", "param::func":
		return Param, true
	case "shared", "shared::cta":
		return Shared, true
	case "shared::cluster":
		return SharedCluster, true
	case "tex":
		return Tex, true
	}
	return Generic, false
}

// Linkage is how a symbol is visible outside its module.
type Linkage uint8

// The linkages; Private is the default.
const (
	Private Linkage = iota
	Extern
	Visible
	Weak
	Common
)

var linkageNames = [...]string{Private: "", Extern: "extern", Visible: "visible", Weak: "weak", Common: "common"}

// String is the directive without the dot, empty for Private.
func (l Linkage) String() string { return linkageNames[l] }

func linkageOf(directive string) Linkage {
	for l := Extern; l <= Common; l++ {
		if directive == linkageNames[l] {
			return l
		}
	}
	return Private
}
