package train

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/tensor"
)

// Picture is a sample in grey with what the model takes it for, or what it shows.
type Picture struct {
	Width, Height   int
	Pixels          []float32 // grey, 0 to 1
	Label, Foretold int
	Named           bool   // it is not about a class, and has a Caption in place of the last two
	Caption         string // what it shows
}

// shown are grey pictures x[n, height, width], values from 0 to 1.
func shown(caption string, x *tensor.Tensor) (list []Picture) {
	n, h, w := x.Dim(0), x.Dim(1), x.Dim(2)
	greys := x.Floats()
	for i := range n {
		p := Picture{Width: w, Height: h, Named: true, Caption: caption, Pixels: make([]float32, h*w)}
		for k := range p.Pixels {
			p.Pixels[k] = float32(greys[i*h*w+k])
		}
		list = append(list, p)
	}
	return list
}

// stretched is sample x[channels, height, width] in grey, its values stretched to 0…1.
func stretched(x *tensor.Tensor) Picture {
	p := shown("", x.Mean(0).Reshape(1, x.Dim(1), x.Dim(2)))[0]
	p.Named = false
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range p.Pixels {
		low, high = min(low, v), max(high, v)
	}
	for i, v := range p.Pixels {
		p.Pixels[i] = (v - low) / max(high-low, 1e-12)
	}
	return p
}

// grid puts pictures x[n, channels, height, width], values from 0 to 1, side by side into a square, with a line between them.
func grid(x *tensor.Tensor) image.Image {
	n, c, h, w := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	columns := int(math.Ceil(math.Sqrt(float64(n))))
	rows := (n + columns - 1) / columns
	sheet := image.NewNRGBA(image.Rect(0, 0, columns*(w+1)-1, rows*(h+1)-1))
	for i := range sheet.Pix { // the lines
		sheet.Pix[i] = 0x60 | uint8(i%4/3)*0xff
	}
	values := x.Floats()
	for i := range n {
		left, top, of := i%columns*(w+1), i/columns*(h+1), values[i*c*h*w:][:c*h*w]
		for k := range h * w {
			sheet.SetNRGBA(left+k%w, top+k/w, pixel(of, c, h*w, k))
		}
	}
	return sheet
}

// pixel is a place of a picture, channel by channel: red, green and blue of three, else the mean as grey.
func pixel(values []float64, channels, size, at int) color.NRGBA {
	byteOf := func(v float64) uint8 { return uint8(math.Round(255 * min(max(v, 0), 1))) }
	if channels == 3 {
		return color.NRGBA{byteOf(values[at]), byteOf(values[size+at]), byteOf(values[2*size+at]), 255}
	}
	sum := 0.0
	for c := range channels {
		sum += values[c*size+at]
	}
	grey := byteOf(sum / float64(channels))
	return color.NRGBA{grey, grey, grey, 255}
}

// savePNG writes a picture as a whole or not at all.
func savePNG(path string, m image.Image) error {
	return durable.WriteFile(path, func(w io.Writer) error { return png.Encode(w, m) })
}
