package dtype

import (
	"fmt"
	"strings"
)

// aliases are the names that PyTorch takes from C.
var aliases = map[string]DType{"float": F32, "double": F64, "half": F16, "long": I64, "int": I32}

// byName holds every lower-case spelling that Parse accepts.
var byName = func() map[string]DType {
	names := make(map[string]DType)
	for _, d := range All() {
		names[d.String()] = d
		names[strings.ToLower(d.Safetensors())] = d
		names[d.Torch()] = d
		if s, ok := d.NumPy(); ok {
			names[s] = d
		}
	}
	for name, d := range aliases {
		names[name] = d
	}
	return names
}()

// Parse returns the type with the given name: "f32", PyTorch's "float32" or
// "torch.float32", safetensors' "F32" or NumPy's "<f4". Case does not matter.
func Parse(name string) (DType, error) {
	key := strings.TrimPrefix(strings.ToLower(name), "torch.")
	if d, ok := byName[key]; ok {
		return d, nil
	}
	return Invalid, fmt.Errorf("dtype: unknown element type %q; use one of %s", name, strings.Join(shortNames(), ", "))
}

func shortNames() (names []string) {
	for _, d := range All() {
		names = append(names, d.String())
	}
	return names
}

// Safetensors returns the spelling in a safetensors header: "F32", "BOOL"; "" for Invalid.
func (d DType) Safetensors() string { return d.facts().safetensors }

// NumPy returns the little-endian type string of an npy header, "<f4". NumPy has
// no BF16 and no 8-bit floating-point types: for them and Invalid the second result is false.
func (d DType) NumPy() (string, bool) {
	s := d.facts().numpy
	return s, s != ""
}

// Torch returns PyTorch's name without "torch.": "float32", "bool"; "" for Invalid.
func (d DType) Torch() string { return d.facts().torch }
