package data

import "fmt"

// pictures is the source of [Pictures].
type pictures struct {
	pixels []uint8
	shape  []int
	width  int
	labels []int64
}

// unit is each byte divided by 255.
var unit = func() (t [256]float32) {
	for i := range t {
		t[i] = float32(i) / 255
	}
	return t
}()

// Pictures is a set of 8-bit pictures, len(labels) of the given shape one after another. A sample's pixels are divided
// by 255. The slices are not copied.
func Pictures(pixels []uint8, shape []int, labels []int64) (Source[Pair], error) {
	p := &pictures{pixels, shape, elements(shape), labels}
	if len(pixels) != len(labels)*p.width {
		return nil, fmt.Errorf("data: %d pixels for %d pictures of shape %v; give %d", len(pixels), len(labels), shape, len(labels)*p.width)
	}
	return p, nil
}

func (p *pictures) Len() int        { return len(p.labels) }
func (p *pictures) InMemory() bool  { return true }
func (p *pictures) Fields() []Field { return PairFields(p.shape) }

func (p *pictures) Fill(_ *Pair, row Row, i int) error {
	x := Values[float32](row, 0)
	for k, v := range p.pixels[i*p.width:][:len(x)] {
		x[k] = unit[v]
	}
	Values[int64](row, 1)[0] = p.labels[i]
	return nil
}
func (p *pictures) String() string { return describe("pictures", len(p.labels), p.Fields()) }
