package nn

import (
	"maps"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

func init() {
	maps.Copy(forwards, map[string]forward{
		"Conv1d": one(func(c *goldenCase) Module {
			return loaded(c, NewConv1d(c.env(), 2, c.Attrs.int("out", 0), c.Attrs.int("kernel", 0), c.convolution()))
		}),
		"Conv2dPadded": one(func(c *goldenCase) Module {
			return loaded(c, NewConv2d(c.env(), 2, c.Attrs.int("out", 0), c.Attrs.int("kernel", 0), c.convolution()))
		}),
		"ConvTranspose1d": one(func(c *goldenCase) Module {
			l := loaded(c, NewConvTranspose1d(c.env(), 2, c.Attrs.int("out", 0), c.Attrs.int("kernel", 0), c.transposed()))
			if size := c.sizes("size"); size != nil {
				return sized(func(x *tensor.Tensor) *tensor.Tensor { return l.ForwardSize(x, size[0]) })
			}
			return l
		}),
		"ConvTranspose2d": one(func(c *goldenCase) Module {
			l := loaded(c, NewConvTranspose2d(c.env(), 2, c.Attrs.int("out", 0), c.Attrs.int("kernel", 0), c.transposed()))
			if size := c.sizes("size"); size != nil {
				return sized(func(x *tensor.Tensor) *tensor.Tensor { return l.ForwardSize(x, size[0], size[1]) })
			}
			return l
		}),
		"interpolate": one(upsampled),
		"pad": one(func(c *goldenCase) Module {
			return Pad{c.sizes("sides"), padModes[c.Attrs.text("mode")], c.Attrs.number("value", 0)}
		}),
		"pixel_shuffle":   one(func(c *goldenCase) Module { return PixelShuffle{c.Attrs.int("by", 0)} }),
		"pixel_unshuffle": one(func(c *goldenCase) Module { return PixelUnshuffle{c.Attrs.int("by", 0)} }),
		"channel_shuffle": one(func(c *goldenCase) Module { return ChannelShuffle{c.Attrs.int("groups", 0)} }),
		"unfold":          one(func(c *goldenCase) Module { return Unfold{c.windows()} }),
		"fold":            one(func(c *goldenCase) Module { return Fold{c.Attrs.pair("size", 0), c.windows()} }),
		"adaptive_avg":    one(func(c *goldenCase) Module { return AdaptiveAvgPool{c.sizes("size")} }),
		"adaptive_max":    one(func(c *goldenCase) Module { return AdaptiveMaxPool{c.sizes("size")} }),
	})
}

// sized is a module of a function.
type sized func(x *tensor.Tensor) *tensor.Tensor

func (f sized) Forward(x *tensor.Tensor) *tensor.Tensor { return f(x) }

var padModes = map[string]PadMode{"constant": PadConstant, "zeros": PadConstant, "reflect": PadReflect, "replicate": PadReplicate, "circular": PadCircular}

func (c *goldenCase) env() *tensor.Env { return c.t["in.x"].Env() }

// loaded is a module with the parameters of the case.
func loaded[M any](c *goldenCase, m M) M {
	c.load(m)
	return m
}

// sizes is a list of whole numbers, or nil.
func (c *goldenCase) sizes(key string) (all []int) {
	switch v := c.Attrs[key].(type) {
	case float64:
		return []int{int(v)}
	case []any:
		for _, v := range v {
			all = append(all, int(v.(float64)))
		}
	}
	return all
}

func (c *goldenCase) convolution() ConvConfig {
	return ConvConfig{Stride: c.Attrs.int("stride", 0), Padding: c.Attrs.int("padding", 0), Dilation: c.Attrs.int("dilation", 0), Groups: c.Attrs.int("groups", 0),
		NoBias: c.Attrs["bias"] == false, Same: c.Attrs.text("padding") == "same", Mode: padModes[c.Attrs.text("padding_mode")]}
}

func (c *goldenCase) transposed() ConvTransposeConfig {
	return ConvTransposeConfig{Stride: c.Attrs.int("stride", 0), Padding: c.Attrs.int("padding", 0), OutputPadding: c.Attrs.int("output_padding", 0),
		Dilation: c.Attrs.int("dilation", 0), Groups: c.Attrs.int("groups", 0), NoBias: c.Attrs["bias"] == false}
}

func (c *goldenCase) windows() Windows {
	return Windows{c.Attrs.pair("kernel", 0), c.Attrs.pair("stride", 1), c.Attrs.pair("padding", 0), c.Attrs.pair("dilation", 1)}
}

var upsampleModes = map[string]UpsampleMode{"nearest": ModeNearest, "nearest-exact": ModeNearestExact, "linear": ModeBilinear, "bilinear": ModeBilinear, "trilinear": ModeBilinear, "bicubic": ModeBicubic, "area": ModeArea}

func upsampled(c *goldenCase) Module {
	l := Upsample{Size: c.sizes("size"), Mode: upsampleModes[c.Attrs.text("mode")], AlignCorners: c.Attrs.flag("corners"), Antialias: c.Attrs.flag("antialias"), Recompute: c.Attrs.flag("recompute_scale_factor")}
	switch v := c.Attrs["scale_factor"].(type) {
	case float64:
		l.Scale = []float64{v}
	case []any:
		for _, v := range v {
			l.Scale = append(l.Scale, v.(float64))
		}
	}
	return l
}

// TestSpatialMisuse: what cannot be is told.
func TestSpatialMisuse(t *testing.T) {
	env := freshEnv(t)
	x := env.Ones(1, 4, 4, 4)
	for name, f := range map[string]func(){
		"no size":           func() { Upsample{}.Forward(x) },
		"two sizes":         func() { Upsample{Size: []int{2}, Scale: []float64{2}}.Forward(x) },
		"sizes":             func() { Upsample{Size: []int{2, 2, 2}}.Forward(x) },
		"nothing left":      func() { Upsample{Scale: []float64{0.1}}.Forward(x) },
		"curves on lines":   func() { Upsample{Size: []int{3}, Mode: ModeBicubic}.Forward(env.Ones(1, 1, 4)) },
		"corners":           func() { Upsample{Size: []int{3}, AlignCorners: true}.Forward(x) },
		"whole numbers":     func() { Upsample{Size: []int{3}, Mode: ModeBilinear}.Forward(env.Arange(4).Reshape(1, 1, 4)) },
		"mirror":            func() { Pad{Sides: []int{4, 0}, Mode: PadReflect}.Forward(x) },
		"circle":            func() { Pad{Sides: []int{5, 0}, Mode: PadCircular}.Forward(x) },
		"odd sides":         func() { Pad{Sides: []int{1}}.Forward(x) },
		"cut":               func() { Pad{Sides: []int{-3, -3}}.Forward(x) },
		"shuffle":           func() { PixelShuffle{3}.Forward(x) },
		"unshuffle":         func() { PixelUnshuffle{3}.Forward(x) },
		"channels":          func() { ChannelShuffle{3}.Forward(x) },
		"window":            func() { Unfold{Windows{Kernel: [2]int{5, 1}}}.Forward(x) },
		"fold":              func() { Fold{[2]int{4, 4}, Windows{Kernel: [2]int{2, 2}}}.Forward(env.Ones(1, 4, 8)) },
		"adaptive":          func() { AdaptiveAvgPool{[]int{2, 2, 2, 2}}.Forward(x) },
		"same with stride":  func() { NewConv1d(env, 2, 2, 3, ConvConfig{Same: true, Stride: 2}) },
		"groups":            func() { NewConvTranspose2d(env, 3, 4, 3, ConvTransposeConfig{Groups: 2}) },
		"size of transpose": func() { NewConvTranspose2d(env, 4, 4, 3, ConvTransposeConfig{Stride: 2}).ForwardSize(x, 20, 9) },
		"rank":              func() { NewConv1d(env, 4, 4, 3, ConvConfig{}).Forward(x) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestShuffleNothing: pixels without samples or rows are shuffled there and back, with a gradient, which PyTorch has not.
func TestShuffleNothing(t *testing.T) {
	env := freshEnv(t)
	for _, shape := range [][]int{{0, 4, 3, 2}, {2, 4, 0, 3}, {2, 0, 4, 3, 1}, {4, 3, 0}} {
		x := env.Zeros(shape...).RequireGrad()
		y := PixelUnshuffle{2}.Forward(PixelShuffle{2}.Forward(x))
		if g := tensor.Grad(y.Sum(), x)[0]; !y.SameShape(x) || !g.SameShape(x) {
			t.Errorf("%v: result %v, gradient %v", shape, y.Shape(), g.Shape())
		}
	}
}
