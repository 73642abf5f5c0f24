package augment

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// mapped is a picture of the same size.
func (p *Picture) mapped(f func(v float32) float32) *Picture {
	out := NewPicture(p.C, p.H, p.W)
	for i, v := range p.Pix {
		out.Pix[i] = f(v)
	}
	return out
}

// blend is factor parts of the picture and 1 - factor of other, from 0 to 1.
func (p *Picture) blend(factor float64, other func(i int) float64) *Picture {
	out := NewPicture(p.C, p.H, p.W)
	for i, v := range p.Pix {
		out.Pix[i] = unit(factor*float64(v) + (1-factor)*other(i))
	}
	return out
}

func unit(v float64) float32 { return float32(min(max(v, 0), 1)) }

// gray is how light pixel i of a channel is: of one channel its value.
func (p *Picture) gray(i int) float64 {
	if p.C == 1 {
		return float64(p.Pix[i])
	}
	n := p.H * p.W
	return 0.2989*float64(p.Pix[i]) + 0.587*float64(p.Pix[n+i]) + 0.114*float64(p.Pix[2*n+i])
}

// colored refuses pictures that are neither gray nor RGB.
func (p *Picture) colored(op string) {
	if p.C != 1 && p.C != 3 {
		tensor.Raise(op, "give 1 channel, or 3 of red, green and blue", "a picture of %d channels", p.C)
	}
}

// Brightness multiplies by a factor: 0 is black, 1 the picture.
func (p *Picture) Brightness(factor float64) *Picture {
	return p.blend(factor, func(int) float64 { return 0 })
}

// Contrast goes away from the mean of the gray picture: 0 is all gray, 1 the picture.
func (p *Picture) Contrast(factor float64) *Picture {
	p.colored("Picture.Contrast")
	mean := 0.0
	for i := range p.H * p.W {
		mean += p.gray(i)
	}
	mean /= float64(p.H * p.W)
	return p.blend(factor, func(int) float64 { return mean })
}

// Saturation goes away from the gray picture: 0 is gray, 1 the picture.
func (p *Picture) Saturation(factor float64) *Picture {
	p.colored("Picture.Saturation")
	if p.C == 1 {
		return p
	}
	return p.blend(factor, func(i int) float64 { return p.gray(i % (p.H * p.W)) })
}

// Sharpness goes away from a smoothed picture: 0 is smooth, 1 the picture. The rim stays.
func (p *Picture) Sharpness(factor float64) *Picture {
	if p.H <= 2 || p.W <= 2 {
		return p
	}
	return p.blend(factor, func(i int) float64 {
		x, y := i%p.W, i/p.W%p.H
		if x == 0 || y == 0 || x == p.W-1 || y == p.H-1 {
			return float64(p.Pix[i])
		}
		sum := 4 * float64(p.Pix[i])
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				sum += float64(p.Pix[i+dy*p.W+dx])
			}
		}
		return sum / 13
	})
}

// Hue turns colours on their circle by a part of it, from -0.5 to 0.5. A picture of one channel has none.
func (p *Picture) Hue(turn float64) *Picture {
	p.colored("Picture.Hue")
	if p.C == 1 {
		return p
	}
	out, n := NewPicture(p.C, p.H, p.W), p.H*p.W
	for i := range n {
		h, s, v := hsv(float64(p.Pix[i]), float64(p.Pix[n+i]), float64(p.Pix[2*n+i]))
		h += turn
		r, g, b := rgb(h-math.Floor(h), s, v)
		out.Pix[i], out.Pix[n+i], out.Pix[2*n+i] = float32(r), float32(g), float32(b)
	}
	return out
}

func hsv(r, g, b float64) (h, s, v float64) {
	v = max(r, g, b)
	d := v - min(r, g, b)
	if d == 0 {
		return 0, 0, v
	}
	switch v {
	case r:
		h = (g - b) / d
	case g:
		h = 2 + (b-r)/d
	default:
		h = 4 + (r-g)/d
	}
	h = h/6 + 1
	return h - math.Floor(h), d / v, v
}

func rgb(h, s, v float64) (r, g, b float64) {
	sector := math.Floor(6 * h)
	f := 6*h - sector
	p, q, t := unit64(v*(1-s)), unit64(v*(1-s*f)), unit64(v*(1-s*(1-f)))
	switch int(sector) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	}
	return v, p, q
}

func unit64(v float64) float64 { return min(max(v, 0), 1) }

// Normalize is (x - mean) / deviation of each channel.
func (p *Picture) Normalize(mean, deviation []float32) *Picture {
	if len(mean) != p.C || len(deviation) != p.C {
		tensor.Raise("Picture.Normalize", "give a number for each channel", "%d means and %d deviations for %d channels", len(mean), len(deviation), p.C)
	}
	out, n := NewPicture(p.C, p.H, p.W), p.H*p.W
	for i, v := range p.Pix {
		out.Pix[i] = (v - mean[i/n]) / deviation[i/n]
	}
	return out
}

// Posterize keeps the highest bits of 8.
func (p *Picture) Posterize(bits int) *Picture {
	mask := 0xff &^ (1<<(8-bits) - 1)
	return p.mapped(func(v float32) float32 { return float32(level(v)&mask) / 255 })
}

// level is a value as one of 256.
func level(v float32) int { return int(math.Round(255 * float64(unit(float64(v))))) }

// Solarize inverts what is at least as light as threshold.
func (p *Picture) Solarize(threshold float64) *Picture {
	return p.mapped(func(v float32) float32 {
		if float64(v) >= threshold {
			return 1 - v
		}
		return v
	})
}

// AutoContrast stretches each channel to the range from 0 to 1.
func (p *Picture) AutoContrast() *Picture {
	return p.channels(func(in, out []float32) {
		lo, hi := in[0], in[0]
		for _, v := range in {
			lo, hi = min(lo, v), max(hi, v)
		}
		for i, v := range in {
			if out[i] = unit(float64(v)); hi > lo {
				out[i] = unit(float64(v-lo) / float64(hi-lo))
			}
		}
	})
}

// Equalize spreads the 256 levels of each channel, so that each is as frequent as the others.
func (p *Picture) Equalize() *Picture {
	return p.channels(func(in, out []float32) {
		var count, table [256]int
		last := 0
		for _, v := range in {
			count[level(v)]++
			last = max(last, level(v))
		}
		step := (len(in) - count[last]) / 255
		sum := step / 2
		for k := range table {
			if table[k] = k; step > 0 {
				table[k] = min(sum/step, 255)
			}
			sum += count[k]
		}
		for i, v := range in {
			out[i] = float32(table[level(v)]) / 255
		}
	})
}

func (p *Picture) channels(f func(in, out []float32)) *Picture {
	out, n := NewPicture(p.C, p.H, p.W), p.H*p.W
	for c := range p.C {
		f(p.Pix[c*n:(c+1)*n], out.Pix[c*n:(c+1)*n])
	}
	return out
}
