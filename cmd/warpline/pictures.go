package main

import "github.com/warpline-ml/warpline/train"

// widest is the most columns of a picture in a gallery.
const widest = 32

// shrunk averages squares of pixels until pictures fit.
func shrunk(pictures []train.Picture) []train.Picture {
	var out []train.Picture
	for _, p := range pictures {
		out = append(out, shrink(p, (p.Width+widest-1)/widest))
	}
	return out
}

func shrink(p train.Picture, by int) train.Picture {
	if by <= 1 {
		return p
	}
	small := p
	small.Width, small.Height = p.Width/by, max(p.Height/by, 1)
	small.Pixels = make([]float32, small.Width*small.Height)
	for y := range small.Height {
		for x := range small.Width {
			small.Pixels[y*small.Width+x] = mean(p, x*by, y*by, by)
		}
	}
	return small
}

// mean is the average of a square of pixels, as far as it is inside.
func mean(p train.Picture, left, top, side int) float32 {
	var sum, n float32
	for y := top; y < min(top+side, p.Height); y++ {
		for x := left; x < min(left+side, p.Width); x++ {
			sum += p.Pixels[y*p.Width+x]
			n++
		}
	}
	return sum / max(n, 1)
}

// faint is a grey that counts as empty.
const faint = 0.1

// trimmed cuts off the border that all pictures of a size leave empty.
func trimmed(pictures []train.Picture) []train.Picture {
	w, h := pictures[0].Width, pictures[0].Height
	x0, x1, y0, y1 := w, 0, h, 0
	for _, p := range pictures {
		if p.Width != w || p.Height != h {
			return pictures
		}
		for i, v := range p.Pixels {
			if v > faint {
				x0, x1 = min(x0, i%w), max(x1, i%w+1)
				y0, y1 = min(y0, i/w), max(y1, i/w+1)
			}
		}
	}
	if x0 >= x1 {
		return pictures
	}
	var out []train.Picture
	for _, p := range pictures {
		c := p
		c.Width, c.Height, c.Pixels = x1-x0, y1-y0, nil
		for y := y0; y < y1; y++ {
			c.Pixels = append(c.Pixels, p.Pixels[y*w+x0:y*w+x1]...)
		}
		out = append(out, c)
	}
	return out
}
