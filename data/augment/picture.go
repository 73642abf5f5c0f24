// Package augment changes pictures before a model sees them, as torchvision's transforms do, with the random numbers of each sample:
// the same sample in the same epoch of the same seed has the same pixels, whatever batches and workers are.
//
//	train, err = augment.Apply(train, augment.RandomCrop(32, 32, 4), augment.RandomFlip(0.5), augment.Normalize(mean, deviation))
//
// What is random is a [Transform]; what it does with the numbers it has drawn is a method of [Picture], equal to torchvision's of
// float tensors. [MixUp] and [CutMix] mix the pictures of a batch, on its device.
package augment

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Picture is a picture of float32, [channels, height, width] as in batches. Values go from 0 to 1 unless they are normalised.
type Picture struct {
	Pix     []float32
	C, H, W int
}

// NewPicture is a picture of zeros.
func NewPicture(c, h, w int) *Picture { return &Picture{make([]float32, c*h*w), c, h, w} }

// at is the place of a pixel.
func (p *Picture) at(c, y, x int) int { return (c*p.H+y)*p.W + x }

// each is a picture of another size, whose pixels are made of p's at other places, 0 beside it.
func (p *Picture) each(h, w int, from func(y, x int) (int, int)) *Picture {
	out := NewPicture(p.C, h, w)
	for y := range h {
		for x := range w {
			sy, sx := from(y, x)
			if sy < 0 || sy >= p.H || sx < 0 || sx >= p.W {
				continue
			}
			for c := range p.C {
				out.Pix[out.at(c, y, x)] = p.Pix[p.at(c, sy, sx)]
			}
		}
	}
	return out
}

// Crop is the part of height h and width w at top and left; what is outside the picture is 0.
func (p *Picture) Crop(top, left, h, w int) *Picture {
	return p.each(h, w, func(y, x int) (int, int) { return y + top, x + left })
}

// Flip turns left and right.
func (p *Picture) Flip() *Picture {
	return p.each(p.H, p.W, func(y, x int) (int, int) { return y, p.W - 1 - x })
}

// FlipVertical turns top and bottom.
func (p *Picture) FlipVertical() *Picture {
	return p.each(p.H, p.W, func(y, x int) (int, int) { return p.H - 1 - y, x })
}

// Resize is the picture in another size, bilinear with antialiasing: each pixel is a mean of those below it, weighted by a triangle.
func (p *Picture) Resize(h, w int) *Picture {
	positive("Picture.Resize", h, w)
	rows, cols := triangles(p.H, h), triangles(p.W, w)
	half, out := NewPicture(p.C, p.H, w), NewPicture(p.C, h, w)
	for c := range p.C {
		for y := range p.H {
			for x, t := range cols {
				half.Pix[half.at(c, y, x)] = t.mean(func(i int) float32 { return p.Pix[p.at(c, y, i)] })
			}
		}
		for y, t := range rows {
			for x := range w {
				out.Pix[out.at(c, y, x)] = t.mean(func(i int) float32 { return half.Pix[half.at(c, i, x)] })
			}
		}
	}
	return out
}

func positive(op string, sizes ...int) {
	for _, n := range sizes {
		if n < 1 {
			tensor.Raise(op, "give at least one pixel", "a picture of %v", sizes)
		}
	}
}

// triangle weighs the pixels from first on.
type triangle struct {
	first   int
	weights []float64 // they add up to 1
}

func (t triangle) mean(at func(i int) float32) float32 {
	sum := 0.0
	for k, w := range t.weights {
		sum += w * float64(at(t.first+k))
	}
	return float32(sum)
}

// triangles are the weights of n pixels for each of m.
func triangles(n, m int) []triangle {
	scale := float64(n) / float64(m)
	support := math.Max(scale, 1)
	out := make([]triangle, m)
	for i := range out {
		center := scale * (float64(i) + 0.5)
		lo, hi := max(int(center-support+0.5), 0), min(int(center+support+0.5), n)
		t, sum := triangle{first: lo}, 0.0
		for j := lo; j < hi; j++ {
			w := math.Max(0, 1-math.Abs((float64(j)+0.5-center)/support))
			t.weights, sum = append(t.weights, w), sum+w
		}
		for k := range t.weights {
			t.weights[k] /= sum
		}
		out[i] = t
	}
	return out
}

// Motion is an affine motion of a picture, in torchvision's order.
type Motion struct {
	Degrees          float64 // clockwise
	Right, Down      float64 // pixels
	Scale            float64 // 0: 1
	ShearX, ShearY   float64 // degrees
	CenterX, CenterY float64 // what stays, counted from the middle of the picture
	Bilinear         bool    // false: the nearest pixel
	Fill             float32 // what comes in from outside
}

// Move is the picture moved.
func (p *Picture) Move(m Motion) *Picture {
	if m.Scale == 0 {
		m.Scale = 1
	}
	a := m.inverse()
	out := NewPicture(p.C, p.H, p.W)
	for y := range p.H {
		for x := range p.W {
			ox, oy := float64(x)-float64(p.W-1)/2, float64(y)-float64(p.H-1)/2
			sx := a[0]*ox + a[1]*oy + a[2] + float64(p.W-1)/2
			sy := a[3]*ox + a[4]*oy + a[5] + float64(p.H-1)/2
			for c := range p.C {
				out.Pix[out.at(c, y, x)] = p.sample(c, sy, sx, m)
			}
		}
	}
	return out
}

// inverse leads from places of the moved picture to those of the one before.
func (m Motion) inverse() [6]float64 {
	rot, sx, sy := m.Degrees*math.Pi/180, m.ShearX*math.Pi/180, m.ShearY*math.Pi/180
	a := math.Cos(rot-sy) / math.Cos(sy)
	b := -math.Cos(rot-sy)*math.Tan(sx)/math.Cos(sy) - math.Sin(rot)
	c := math.Sin(rot-sy) / math.Cos(sy)
	d := -math.Sin(rot-sy)*math.Tan(sx)/math.Cos(sy) + math.Cos(rot)
	inv := [6]float64{d / m.Scale, -b / m.Scale, 0, -c / m.Scale, a / m.Scale, 0}
	inv[2] = inv[0]*(-m.CenterX-m.Right) + inv[1]*(-m.CenterY-m.Down) + m.CenterX
	inv[5] = inv[3]*(-m.CenterX-m.Right) + inv[4]*(-m.CenterY-m.Down) + m.CenterY
	return inv
}

func (p *Picture) sample(c int, y, x float64, m Motion) float32 {
	pixel := func(y, x float64) float64 {
		if y < 0 || x < 0 || y > float64(p.H-1) || x > float64(p.W-1) {
			return float64(m.Fill)
		}
		return float64(p.Pix[p.at(c, int(y), int(x))])
	}
	if !m.Bilinear {
		return float32(pixel(math.RoundToEven(y), math.RoundToEven(x)))
	}
	y0, x0 := math.Floor(y), math.Floor(x)
	fy, fx := y-y0, x-x0
	return float32((1-fy)*((1-fx)*pixel(y0, x0)+fx*pixel(y0, x0+1)) + fy*((1-fx)*pixel(y0+1, x0)+fx*pixel(y0+1, x0+1)))
}

// Rotate turns the picture counter-clockwise around its middle.
func (p *Picture) Rotate(degrees float64) *Picture { return p.Move(Motion{Degrees: -degrees}) }
