package nn

import (
	"reflect"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// WeightNorm is a layer whose Weight is a length times a direction, g·v/‖v‖, which train apart (Salimans and Kingma, 2016).
type WeightNorm struct {
	Layer Module         `nn:""`         // without its Weight
	G     *tensor.Tensor `nn:"weight_g"` // lengths, of size 1 in the dimensions that the norm is over
	V     *tensor.Tensor `nn:"weight_v"` // as the weight
	axes  []int
}

// NewWeightNorm takes the Weight out of a layer of this package, such as a [Linear] or [Conv2d]. The norm is over all dimensions but
// dim, of which each entry has a length; -1: over all.
func NewWeightNorm(layer Module, dim int) *WeightNorm {
	field := weightOf(layer)
	w := field.Interface().(*tensor.Tensor)
	needs(layer, "weight", w)
	if dim < -1 || dim >= w.Rank() {
		tensor.Raise("nn.NewWeightNorm", "give one of the weight's dimensions, or -1", "dimension %d of a weight of shape %v", dim, w.Shape())
	}
	l := &WeightNorm{Layer: layer, V: w, axes: []int{}}
	for i := range w.Rank() {
		if i != dim {
			l.axes = append(l.axes, i)
		}
	}
	l.G = w.Env().NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor { return NewParam(l.length(w.In(e))) })
	field.SetZero()
	return l
}

// weightOf is the field of a layer's Weight.
func weightOf(layer Module) reflect.Value {
	v := reflect.ValueOf(layer)
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		if f := v.Elem().FieldByName("Weight"); f.IsValid() && f.Type() == tensorType && f.CanSet() {
			return f
		}
	}
	tensor.Raise("nn.NewWeightNorm", "give a pointer to a struct with a field Weight", "a %T has no Weight", layer)
	return reflect.Value{}
}

// length is the norm of v, with dimensions of size 1 in place of those that it is over.
func (l *WeightNorm) length(v *tensor.Tensor) *tensor.Tensor {
	shape := slices.Clone(v.Shape())
	for _, a := range l.axes {
		shape[a] = 1
	}
	if len(l.axes) == 0 {
		return v.Abs()
	}
	return v.Norm(l.axes...).Reshape(shape...)
}

// Weight is the weight that the layer has at present.
func (l *WeightNorm) Weight(env *tensor.Env) *tensor.Tensor {
	v := l.V.In(env)
	return v.Mul(l.G.In(env).Div(l.length(v)))
}

// Forward applies the layer with its weight.
func (l *WeightNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	copied := reflect.New(reflect.TypeOf(l.Layer).Elem())
	copied.Elem().Set(reflect.ValueOf(l.Layer).Elem())
	layer := copied.Interface().(Module)
	weightOf(layer).Set(reflect.ValueOf(l.Weight(in.x.Env())))
	return in.leave(layer.Forward(in.x))
}

// String tells the layer.
func (l *WeightNorm) String() string { return Kind(l.Layer) + " of lengths and directions" }
