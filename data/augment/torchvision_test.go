package augment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

func picture(x *tensor.Tensor) *Picture {
	return &Picture{tensor.Data[float32](x), x.Dim(0), x.Dim(1), x.Dim(2)}
}

// calls are what bench/pytorch/augment_reference.py calls by these names.
var calls = map[string]func(p *Picture, a []float64) *Picture{
	"Crop":         func(p *Picture, a []float64) *Picture { return p.Crop(int(a[0]), int(a[1]), int(a[2]), int(a[3])) },
	"Flip":         func(p *Picture, _ []float64) *Picture { return p.Flip() },
	"FlipVertical": func(p *Picture, _ []float64) *Picture { return p.FlipVertical() },
	"Resize":       func(p *Picture, a []float64) *Picture { return Resize(int(a[0]), int(a[1]))(p, nil) },
	"Rotate":       func(p *Picture, a []float64) *Picture { return p.Rotate(a[0]) },
	"Move": func(p *Picture, a []float64) *Picture {
		return p.Move(Motion{Degrees: a[0], Right: a[1], Down: a[2], Scale: a[3], ShearX: a[4], ShearY: a[5], Bilinear: a[6] == 1})
	},
	"Brightness":   func(p *Picture, a []float64) *Picture { return p.Brightness(a[0]) },
	"Contrast":     func(p *Picture, a []float64) *Picture { return p.Contrast(a[0]) },
	"Saturation":   func(p *Picture, a []float64) *Picture { return p.Saturation(a[0]) },
	"Sharpness":    func(p *Picture, a []float64) *Picture { return p.Sharpness(a[0]) },
	"Hue":          func(p *Picture, a []float64) *Picture { return p.Hue(a[0]) },
	"Posterize":    func(p *Picture, a []float64) *Picture { return p.Posterize(int(a[0])) },
	"Solarize":     func(p *Picture, a []float64) *Picture { return p.Solarize(a[0]) },
	"AutoContrast": func(p *Picture, _ []float64) *Picture { return p.AutoContrast() },
	"Equalize":     func(p *Picture, _ []float64) *Picture { return p.Equalize() },
	"Normalize": func(p *Picture, _ []float64) *Picture {
		return Normalize([]float32{0.485, 0.456, 0.406}[:p.C], []float32{0.229, 0.224, 0.225}[:p.C])(p, nil)
	},
	"CenterCrop": func(p *Picture, a []float64) *Picture {
		h, w := int(a[0]), int(a[1])
		if h > p.H || w > p.W { // torchvision pads, here it is an error
			return nil
		}
		return CenterCrop(h, w)(p, nil)
	},
}

// TestAsTorchvision: every call gives torchvision's pixels.
func TestAsTorchvision(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Calls []struct {
			Name, Picture string
			Args          []float64
		}
	}
	golden.JSON(t, "testdata/torchvision.json", &list)
	tensors := golden.Tensors(t, env, "testdata/torchvision.safetensors")
	seen := map[string]bool{}
	for k, c := range list.Calls {
		do := calls[c.Name]
		if name, ok := strings.CutPrefix(c.Name, "RandAugment "); ok {
			i := slices.IndexFunc(policies, func(p policy) bool { return p.name == name })
			if i < 0 {
				t.Fatalf("there is no operation %s", name)
			}
			do = func(p *Picture, a []float64) *Picture { return policies[i].do(p, a[0]) }
		}
		seen[c.Name] = true
		in := picture(tensors["in."+c.Picture])
		before := slices.Clone(in.Pix)
		got, want := do(in, c.Args), picture(tensors[fmt.Sprint("out.", k)])
		if got == nil {
			continue
		}
		if !slices.Equal(in.Pix, before) {
			t.Errorf("%s changes the picture that it is given", c.Name)
		}
		if got.C != want.C || got.H != want.H || got.W != want.W {
			t.Errorf("%s%v of %s: %d×%d×%d, want %d×%d×%d", c.Name, c.Args, c.Picture, got.C, got.H, got.W, want.C, want.H, want.W)
			continue
		}
		worst := 0.0
		for i := range want.Pix {
			worst = max(worst, math.Abs(float64(got.Pix[i]-want.Pix[i])))
		}
		if worst > 3e-6 {
			t.Errorf("%s%v of %s: off by %.2g", c.Name, c.Args, c.Picture, worst)
		}
	}
	for name := range calls {
		if !seen[name] {
			t.Errorf("nothing calls %s", name)
		}
	}
	for _, p := range policies {
		if !seen["RandAugment "+p.name] {
			t.Errorf("nothing calls %s", p.name)
		}
	}
}
