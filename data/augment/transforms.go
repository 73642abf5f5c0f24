package augment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Transform changes a picture, by random numbers if it needs some. It gives back another one, of the same size for every picture of
// a size, or the same unchanged.
type Transform func(p *Picture, r *rand.Rand) *Picture

// Apply is a set of pictures with transforms one after another. X is float32 [channels, height, width]; the result has the size that the
// transforms make. Put what is slow to read below it into a cache, and this above.
func Apply(src data.Source[data.Pair], transforms ...Transform) (data.Source[data.Pair], error) {
	fields := slices.Clone(src.Fields())
	from := fields[0].Shape
	if fields[0].DType != dtype.F32 || len(from) != 3 || slices.Contains(from, data.Any) {
		return nil, fmt.Errorf("augment: samples are %s%v; give float32 [channels, height, width]", fields[0].DType, from)
	}
	change := func(pix []float32, r *rand.Rand) *Picture {
		p := &Picture{pix, from[0], from[1], from[2]}
		for _, t := range transforms {
			p = t(p, r)
		}
		return p
	}
	like := change(make([]float32, from[0]*from[1]*from[2]), rand.New(rand.NewPCG(0, 0)))
	fields[0].Shape = []int{like.C, like.H, like.W}
	return data.MapTo(src, fields, func(from, to data.Row) error {
		p := change(data.Values[float32](from, 0), to.Rand())
		if size := []int{p.C, p.H, p.W}; !slices.Equal(size, fields[0].Shape) {
			return fmt.Errorf("augment: the transforms make a picture of %v, and of another %v; end with a crop or Resize", size, fields[0].Shape)
		}
		copy(data.Values[float32](to, 0), p.Pix)
		to.Copy(1, from)
		return nil
	}), nil
}

func fixed(f func(p *Picture) *Picture) Transform {
	return func(p *Picture, _ *rand.Rand) *Picture { return f(p) }
}

// Resize brings pictures to a size.
func Resize(h, w int) Transform {
	positive("augment.Resize", h, w)
	return fixed(func(p *Picture) *Picture { return p.Resize(h, w) })
}

// Normalize takes the mean of each channel off and divides by its deviation. It comes last.
func Normalize(mean, deviation []float32) Transform {
	return fixed(func(p *Picture) *Picture { return p.Normalize(mean, deviation) })
}

// CenterCrop is the middle of a picture.
func CenterCrop(h, w int) Transform {
	return fixed(func(p *Picture) *Picture {
		p.holds("augment.CenterCrop", h, w)
		return p.Crop(int(math.RoundToEven(float64(p.H-h)/2)), int(math.RoundToEven(float64(p.W-w)/2)), h, w)
	})
}

func (p *Picture) holds(op string, h, w int) {
	positive(op, h, w)
	if h > p.H || w > p.W {
		tensor.Raise(op, "give a smaller part, or padding", "a part of %d×%d of a picture of %d×%d", h, w, p.H, p.W)
	}
}

// RandomCrop is a part of a picture, which has padding pixels of 0 on each side.
func RandomCrop(h, w, padding int) Transform {
	return func(p *Picture, r *rand.Rand) *Picture {
		(&Picture{H: p.H + 2*padding, W: p.W + 2*padding}).holds("augment.RandomCrop", h, w)
		top, left := r.IntN(p.H+2*padding-h+1), r.IntN(p.W+2*padding-w+1)
		return p.Crop(top-padding, left-padding, h, w)
	}
}

// RandomResizedCrop is a part of a random size and form, brought to a size: of an area between areas of the picture's, usually 0.08
// to 1, and a width by height between forms, usually 3/4 to 4/3.
func RandomResizedCrop(h, w int, areas, forms [2]float64) Transform {
	positive("augment.RandomResizedCrop", h, w)
	if !(areas[0] > 0 && areas[0] <= areas[1] && areas[1] <= 1 && forms[0] > 0 && forms[0] <= forms[1]) || math.IsInf(forms[1], 1) {
		tensor.Raise("augment.RandomResizedCrop", "give areas such as 0.08 to 1 and forms such as 0.75 to 1.33", "areas %v, forms %v", areas, forms)
	}
	return func(p *Picture, r *rand.Rand) *Picture {
		top, left, ch, cw := p.part(areas, forms, r)
		return p.Crop(top, left, ch, cw).Resize(h, w)
	}
}

// part draws a part of a picture, by torchvision's rule: ten trials, then the largest in the middle that has an allowed form.
func (p *Picture) part(areas, forms [2]float64, r *rand.Rand) (top, left, h, w int) {
	area := float64(p.H * p.W)
	for range 10 {
		a := area * between(r, areas[0], areas[1])
		form := math.Exp(between(r, math.Log(forms[0]), math.Log(forms[1])))
		w, h = int(math.RoundToEven(math.Sqrt(a*form))), int(math.RoundToEven(math.Sqrt(a/form)))
		if w > 0 && w <= p.W && h > 0 && h <= p.H {
			return r.IntN(p.H - h + 1), r.IntN(p.W - w + 1), h, w
		}
	}
	h, w = p.H, p.W
	switch form := float64(p.W) / float64(p.H); {
	case form < forms[0]:
		h = int(math.RoundToEven(float64(w) / forms[0]))
	case form > forms[1]:
		w = int(math.RoundToEven(float64(h) * forms[1]))
	}
	return (p.H - h) / 2, (p.W - w) / 2, h, w
}

func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }

// sometimes is a transform that happens with a chance.
func sometimes(op string, chance float64, f func(p *Picture) *Picture) Transform {
	if !(chance >= 0 && chance <= 1) {
		tensor.Raise(op, "give a chance from 0 to 1", "a chance of %v", chance)
	}
	return func(p *Picture, r *rand.Rand) *Picture {
		if r.Float64() < chance {
			return f(p)
		}
		return p
	}
}

// RandomFlip turns left and right with a chance.
func RandomFlip(chance float64) Transform {
	return sometimes("augment.RandomFlip", chance, (*Picture).Flip)
}

// RandomFlipVertical turns top and bottom with a chance.
func RandomFlipVertical(chance float64) Transform {
	return sometimes("augment.RandomFlipVertical", chance, (*Picture).FlipVertical)
}

// RandomRotation turns by up to so many degrees in either direction, to the nearest pixels; what comes in is 0.
func RandomRotation(degrees float64) Transform {
	return func(p *Picture, r *rand.Rand) *Picture { return p.Rotate(between(r, -degrees, degrees)) }
}

// Jitter is by how much [ColorJitter] changes: factors from 1 - x (but not below 0) to 1 + x, and turns of the hue from -Hue to Hue.
type Jitter struct{ Brightness, Contrast, Saturation, Hue float64 }

// ColorJitter changes brightness, contrast, saturation and hue, in random order.
func ColorJitter(j Jitter) Transform {
	if !(j.Brightness >= 0 && j.Contrast >= 0 && j.Saturation >= 0 && j.Hue >= 0 && j.Hue <= 0.5) {
		tensor.Raise("augment.ColorJitter", "give numbers from 0 up, of the hue to 0.5", "%+v", j)
	}
	factor := func(r *rand.Rand, x float64) float64 { return between(r, max(0, 1-x), 1+x) }
	steps := [4]Transform{
		func(p *Picture, r *rand.Rand) *Picture { return p.Brightness(factor(r, j.Brightness)) },
		func(p *Picture, r *rand.Rand) *Picture { return p.Contrast(factor(r, j.Contrast)) },
		func(p *Picture, r *rand.Rand) *Picture { return p.Saturation(factor(r, j.Saturation)) },
		func(p *Picture, r *rand.Rand) *Picture { return p.Hue(between(r, -j.Hue, j.Hue)) },
	}
	does := [4]bool{j.Brightness > 0, j.Contrast > 0, j.Saturation > 0, j.Hue > 0}
	return func(p *Picture, r *rand.Rand) *Picture {
		for _, k := range r.Perm(4) {
			if does[k] {
				p = steps[k](p, r)
			}
		}
		return p
	}
}

// policy is an operation of [RandAugment]: what it does with a magnitude from 0 to 1, and whether that has a random sign.
type policy struct {
	name   string
	signed bool
	do     func(p *Picture, m float64) *Picture
}

// policies are torchvision's, with its ranges.
var policies = []policy{
	{"Identity", false, func(p *Picture, _ float64) *Picture { return p }},
	{"ShearX", true, func(p *Picture, m float64) *Picture { return p.shear(0.3*m, 0) }},
	{"ShearY", true, func(p *Picture, m float64) *Picture { return p.shear(0, 0.3*m) }},
	{"TranslateX", true, func(p *Picture, m float64) *Picture {
		return p.Move(Motion{Right: math.Trunc(150.0 / 331 * m * float64(p.W))})
	}},
	{"TranslateY", true, func(p *Picture, m float64) *Picture {
		return p.Move(Motion{Down: math.Trunc(150.0 / 331 * m * float64(p.H))})
	}},
	{"Rotate", true, func(p *Picture, m float64) *Picture { return p.Rotate(30 * m) }},
	{"Brightness", true, func(p *Picture, m float64) *Picture { return p.Brightness(1 + 0.9*m) }},
	{"Color", true, func(p *Picture, m float64) *Picture { return p.Saturation(1 + 0.9*m) }},
	{"Contrast", true, func(p *Picture, m float64) *Picture { return p.Contrast(1 + 0.9*m) }},
	{"Sharpness", true, func(p *Picture, m float64) *Picture { return p.Sharpness(1 + 0.9*m) }},
	{"Posterize", false, func(p *Picture, m float64) *Picture { return p.Posterize(8 - int(math.RoundToEven(4*m))) }},
	{"Solarize", false, func(p *Picture, m float64) *Picture { return p.Solarize(1 - m) }},
	{"AutoContrast", false, func(p *Picture, _ float64) *Picture { return p.AutoContrast() }},
	{"Equalize", false, func(p *Picture, _ float64) *Picture { return p.Equalize() }},
}

// shear leans the picture over its upper left corner.
func (p *Picture) shear(x, y float64) *Picture {
	return p.Move(Motion{ShearX: math.Atan(x) * 180 / math.Pi, ShearY: math.Atan(y) * 180 / math.Pi, CenterX: -float64(p.W) / 2, CenterY: -float64(p.H) / 2})
}

// RandAugment does operations, each drawn among 14, at a magnitude from 0 to 30 (Cubuk et al., 2019); 2 and 9 are usual.
func RandAugment(operations, magnitude int) Transform {
	if operations < 0 || magnitude < 0 || magnitude > 30 {
		tensor.Raise("augment.RandAugment", "give operations from 0 up and a magnitude from 0 to 30", "%d operations of magnitude %d", operations, magnitude)
	}
	return func(p *Picture, r *rand.Rand) *Picture {
		for range operations {
			o, m := policies[r.IntN(len(policies))], float64(magnitude)/30
			if o.signed && r.IntN(2) == 1 {
				m = -m
			}
			p = o.do(p, m)
		}
		return p
	}
}
