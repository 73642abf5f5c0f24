package cpufeat

// An ID says what processor it is, in its maker's numbers.
type ID struct {
	Maker         string // as CPUID has it: "AuthenticAMD"; "" if unknown
	Family, Model int
}

// decode reads the signature of CPUID's leaf 1: the extended model counts for
// families 6 and 15 and later ones, the extended family for the latter.
func decode(maker string, signature uint32) ID {
	id := ID{maker, int(signature >> 8 & 15), int(signature >> 4 & 15)}
	if id.Family == 6 || id.Family == 15 {
		id.Model |= int(signature >> 16 & 15 << 4)
	}
	if id.Family == 15 {
		id.Family += int(signature >> 20 & 255)
	}
	return id
}

// A Rate is what one core of a microarchitecture can do in a cycle, in
// floating-point operations: a multiply-add is two.
type Rate struct {
	Name   string
	AVX2   int // of float32
	AVX512 int // of float32; 0 without
	Pairs  int // of products of pairs of bfloat16, by VDPBF16PS; 0 without
}

const (
	amd   = "AuthenticAMD"
	intel = "GenuineIntel"
)

// models are rows by maker, family and range of models. A hypervisor may tell
// another model than the processor's: who needs the truth measures beside.
//
// Sources: AMD, "Software Optimization Guide" of families 17h, 19h and 1Ah;
// Intel, "64 and IA-32 Architectures Optimization Reference Manual"; the
// models by the makers' revision guides. Of VDPBF16PS, which Sapphire Rapids
// issues every other cycle, uops.info.
var models = []struct {
	maker    string
	family   int
	from, to int
	rate     Rate
}{
	{amd, 0x17, 0x00, 0x2f, Rate{"Zen", 16, 0, 0}},
	{amd, 0x17, 0x30, 0xff, Rate{"Zen 2", 32, 0, 0}},
	{amd, 0x19, 0x10, 0x1f, Rate{"Zen 4", 32, 32, 64}},
	{amd, 0x19, 0x60, 0x7f, Rate{"Zen 4", 32, 32, 64}},
	{amd, 0x19, 0xa0, 0xaf, Rate{"Zen 4", 32, 32, 64}},
	{amd, 0x19, 0x00, 0xff, Rate{"Zen 3", 32, 0, 0}},
	{amd, 0x1a, 0x20, 0x2f, Rate{"Zen 5 mobile", 32, 32, 64}},
	{amd, 0x1a, 0x60, 0x6f, Rate{"Zen 5 mobile", 32, 32, 64}},
	{amd, 0x1a, 0x00, 0xff, Rate{"Zen 5", 32, 64, 128}},
	{intel, 6, 0x3c, 0x3f, Rate{"Haswell", 32, 0, 0}},
	{intel, 6, 0x45, 0x47, Rate{"Haswell, Broadwell", 32, 0, 0}},
	{intel, 6, 0x4e, 0x4f, Rate{"Skylake, Broadwell", 32, 0, 0}},
	{intel, 6, 0x55, 0x55, Rate{"Skylake to Cooper Lake", 32, 64, 0}},
	{intel, 6, 0x56, 0x5e, Rate{"Broadwell, Skylake", 32, 0, 0}},
	{intel, 6, 0x6a, 0x6c, Rate{"Ice Lake", 32, 64, 0}},
	{intel, 6, 0x7d, 0x7e, Rate{"Ice Lake client", 32, 32, 0}},
	{intel, 6, 0x8c, 0x8d, Rate{"Tiger Lake", 32, 32, 0}},
	{intel, 6, 0x8e, 0x8e, Rate{"Kaby Lake and on", 32, 0, 0}},
	{intel, 6, 0x8f, 0x8f, Rate{"Sapphire Rapids", 32, 64, 32}},
	{intel, 6, 0x97, 0x9a, Rate{"Alder Lake", 32, 0, 0}},
	{intel, 6, 0x9e, 0x9e, Rate{"Kaby Lake and on", 32, 0, 0}},
	{intel, 6, 0xa5, 0xa6, Rate{"Comet Lake", 32, 0, 0}},
	{intel, 6, 0xa7, 0xa7, Rate{"Rocket Lake", 32, 32, 0}},
	{intel, 6, 0xad, 0xae, Rate{"Granite Rapids", 32, 64, 32}},
	{intel, 6, 0xb7, 0xbf, Rate{"Raptor Lake", 32, 0, 0}},
	{intel, 6, 0xcf, 0xcf, Rate{"Emerald Rapids", 32, 64, 32}},
}

// Rate is the row of the table for the processor; without one the zero Rate.
func (id ID) Rate() Rate {
	for _, m := range models {
		if m.maker == id.Maker && m.family == id.Family && m.from <= id.Model && id.Model <= m.to {
			return m.rate
		}
	}
	return Rate{}
}

// At is the row's figure for float32 at a level; 0 if it is not known.
func (r Rate) At(l Level) int {
	switch l {
	case AVX2:
		return r.AVX2
	case AVX512, AVX512BF16:
		return r.AVX512
	}
	return 0
}

// FastPairs tells whether products of pairs of bfloat16 are faster than widening
// to float32, by the table of models: on a model that it does not know they
// are not taken to be.
func (p Processor) FastPairs() bool {
	r := p.ID.Rate()
	return r.Pairs > r.AVX512
}
