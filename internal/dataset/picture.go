package dataset

import (
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // decoders
	_ "image/jpeg"
	_ "image/png"
	"os"
)

// mostPixels bounds the pictures that are read.
const mostPixels = 1 << 27

// Picture reads a picture in PNG, JPEG or GIF as a model of channels×height×width takes it, values from 0 to 1: in grey where there is
// one channel, red, green and blue of three, and resized by the mean of what each pixel covers. What is transparent is black.
func Picture(path string, channels, height, width int) ([]float32, error) {
	if channels != 1 && channels != 3 {
		return nil, fmt.Errorf("%s: a picture has 1 or 3 channels, and the model takes %d", path, channels)
	}
	m, err := Decode(path)
	if err != nil {
		return nil, err
	}
	return resized(m, channels, height, width), nil
}

// Decode reads a picture in PNG, JPEG or GIF.
func Decode(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Width < 1 || c.Height < 1 || c.Width > mostPixels/c.Height {
		return nil, fmt.Errorf("%s has %d×%d pixels, of at most %d", path, c.Width, c.Height, mostPixels)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	m, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// resized is the picture channel by channel.
func resized(m image.Image, channels, height, width int) []float32 {
	b := m.Bounds()
	x := make([]float32, channels*height*width)
	for i := range height {
		top, bottom := covered(i, height, b.Dy())
		for j := range width {
			left, right := covered(j, width, b.Dx())
			var sum [3]float64
			for y := top; y < bottom; y++ {
				for z := left; z < right; z++ {
					add(&sum, m.At(b.Min.X+z, b.Min.Y+y), channels)
				}
			}
			n := float64((bottom - top) * (right - left))
			for c := range channels {
				x[(c*height+i)*width+j] = float32(sum[c] / n / 0xffff)
			}
		}
	}
	return x
}

// covered are the pixels, of a row or column of n, that pixel i of size others stands for: at least one.
func covered(i, size, n int) (from, to int) {
	from = i * n / size
	return from, max((i+1)*n/size, from+1)
}

// add adds a pixel's values.
func add(sum *[3]float64, c color.Color, channels int) {
	if channels == 1 {
		sum[0] += float64(color.Gray16Model.Convert(c).(color.Gray16).Y)
		return
	}
	r, g, b, _ := c.RGBA()
	sum[0] += float64(r)
	sum[1] += float64(g)
	sum[2] += float64(b)
}
