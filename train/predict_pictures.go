package train

import (
	"cmp"
	"errors"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/tensor"
)

// makes are the ends of names of the pictures that the model makes of one.
func (m *opened) makes() []string {
	if _, paints := m.model.(zoo.Painter); paints {
		return []string{"reconstruction"}
	}
	if m.arch.Of().Areas {
		return []string{"mask", "overlay"}
	}
	return nil
}

// name says where the pictures go that are made of inputs. None replaces a file.
func (m *opened) name(c *PredictConfig, list []asked) error {
	ends := m.makes()
	if c.Out != "" {
		if ends == nil {
			return fail("leave --out out", "--out is for models that make pictures, and %s is of type %s", m.from, m.arch.Kind)
		}
		if err := os.MkdirAll(c.Out, 0o777); err != nil {
			return explain(err, "give another --out")
		}
	}
	from := map[string]string{}
	for i := range list {
		path := list[i].name
		for _, end := range ends {
			file := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + "-" + end + ".png"
			file = filepath.Join(cmp.Or(c.Out, filepath.Dir(path)), file)
			if other, twice := from[file]; twice {
				return fail("ask about them one by one, each with another --out", "%s and %s would both make %s", other, path, file)
			}
			if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
				return fail("remove it, or give --out FOLDER", "%s exists, and is not replaced", file)
			}
			from[file] = path
			list[i].made = append(list[i].made, file)
		}
	}
	return nil
}

// reconstruct makes pictures of what the codes of pictures x stand for.
func (m *opened) reconstruct(list []asked, x *tensor.Tensor, g zoo.Painter) (out []*Prediction, err error) {
	y := g.Forward(x).Sigmoid()
	squares := y.Sub(x).Square().Flatten(1).Mean(1).Floats()
	for i := range list {
		reconstruction, codes := g.Bound(x.Slice(0, i, i+1))
		elbo := -reconstruction.Add(codes).Item()
		out = append(out, &Prediction{Reconstruction: list[i].made[0], Error: &squares[i], ELBO: &elbo})
		if err := savePNG(list[i].made[0], grid(y.Slice(0, i, i+1))); err != nil {
			return nil, explain(err, "give another --out")
		}
	}
	return out, nil
}

// segment makes masks of the scores [n, height, width, classes] of pictures.
func (m *opened) segment(list []asked, scores *tensor.Tensor) (out []*Prediction, err error) {
	h, w, n := scores.Dim(1), scores.Dim(2), scores.Dim(3)
	found := scores.ArgMax(-1).Floats()
	for i, a := range list {
		p := &Prediction{Mask: a.made[0], Overlay: a.made[1]}
		mask := image.NewPaletted(image.Rect(0, 0, w, h), palette(n))
		counts := make([]int, n)
		for k, class := range found[i*h*w:][:h*w] {
			mask.Pix[k] = uint8(class)
			counts[int(class)]++
		}
		for class, count := range counts {
			if count > 0 {
				p.Areas = append(p.Areas, Area{m.className(class), float64(count) / float64(h*w)})
			}
		}
		if err := overlay(a.name, mask, p); err != nil {
			return nil, explain(err, "give another --out")
		}
		out = append(out, p)
	}
	return out, nil
}

// overlay writes a mask in the size of its picture, and the picture under it.
func overlay(path string, small *image.Paletted, p *Prediction) error {
	picture, err := dataset.Decode(path)
	if err != nil {
		return err
	}
	b, of := picture.Bounds(), small.Bounds()
	mask := image.NewPaletted(image.Rect(0, 0, b.Dx(), b.Dy()), small.Palette)
	over := image.NewNRGBA(mask.Rect)
	for y := range b.Dy() {
		for x := range b.Dx() {
			class := small.ColorIndexAt(x*of.Dx()/b.Dx(), y*of.Dy()/b.Dy())
			mask.SetColorIndex(x, y, class)
			over.Set(x, y, tinted(picture.At(b.Min.X+x, b.Min.Y+y), mask.Palette[class], class > 0))
		}
	}
	return errors.Join(savePNG(p.Mask, mask), savePNG(p.Overlay, over))
}

// tinted is a colour of a picture, half of it another's.
func tinted(of, by color.Color, tint bool) color.Color {
	if !tint {
		return of
	}
	r, g, b, _ := of.RGBA()
	s, t, u, _ := by.RGBA()
	half := func(v, w uint32) uint8 { return uint8((v + w) >> 9) }
	return color.NRGBA{half(r, s), half(g, t), half(b, u), 255}
}

// palette has a colour for each class, as Pascal VOC has: bits of the number are spread over red, green and blue. The first is black.
func palette(n int) (p color.Palette) {
	for class := range n {
		var c [3]uint8
		for bit := range 8 {
			c[bit%3] |= uint8(class>>bit&1) << (7 - bit/3)
		}
		p = append(p, color.NRGBA{c[0], c[1], c[2], 255})
	}
	return p
}
