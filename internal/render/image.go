package render

import (
	"fmt"
	"math"
	"strings"
)

// Image is a grey picture with a caption.
type Image struct {
	Width, Height int
	Pixels        []float32 // rows from the top, 0 black to 1 white; what lacks or is NaN is black
	Caption       string
}

// at returns the grey of a pixel, 0 outside.
func (m Image) at(x, y int) float64 {
	if i := y*m.Width + x; y < m.Height && i < len(m.Pixels) {
		if v := float64(m.Pixels[i]); !math.IsNaN(v) {
			return min(max(v, 0), 1)
		}
	}
	return 0
}

// Lines draws the picture, two rows of pixels per line. With colour a pixel has one
// of 24 greys; without, it is lit if it is brighter than the middle between the
// darkest and the brightest.
func (m Image) Lines(color bool) []string {
	if m.Width < 1 {
		return nil
	}
	threshold := m.middle()
	lines := make([]string, 0, (m.Height+1)/2)
	for y := 0; y < m.Height; y += 2 {
		if color {
			lines = append(lines, m.colorLine(y))
		} else {
			lines = append(lines, m.plainLine(y, threshold))
		}
	}
	return lines
}

func (m Image) middle() float64 {
	low, high := 1.0, 0.0
	for y := range m.Height {
		for x := range m.Width {
			v := m.at(x, y)
			low, high = min(low, v), max(high, v)
		}
	}
	return (low + high) / 2
}

func (m Image) plainLine(y int, threshold float64) string {
	var b strings.Builder
	for x := range m.Width {
		top, bottom := m.at(x, y) > threshold, m.at(x, y+1) > threshold
		switch {
		case top && bottom:
			b.WriteRune('█')
		case top:
			b.WriteRune('▀')
		case bottom:
			b.WriteRune('▄')
		default:
			b.WriteRune(' ')
		}
	}
	return b.String()
}

// colorLine sets the colours only where they change.
func (m Image) colorLine(y int) string {
	var b strings.Builder
	last := [2]int{-1, -1}
	for x := range m.Width {
		now := [2]int{grey(m.at(x, y)), grey(m.at(x, y+1))}
		if now != last {
			fmt.Fprintf(&b, "\x1b[38;5;%d;48;5;%dm", now[0], now[1])
			last = now
		}
		b.WriteRune('▀')
	}
	return b.String() + reset
}

// grey returns the entry of the 256-colour palette: black, 24 greys, white.
func grey(v float64) int {
	switch n := int(math.Round(v * 25)); n {
	case 0:
		return 16
	case 25:
		return 231
	default:
		return 231 + n
	}
}

// Gallery draws pictures side by side, as many to a row as width holds, each above
// its caption.
func Gallery(images []Image, width int, color bool) string {
	var b strings.Builder
	for len(images) > 0 {
		n := fitting(images, width)
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(galleryRow(images[:n], color))
		images = images[n:]
	}
	return b.String()
}

// fitting returns how many of the first pictures fit, at least 1.
func fitting(images []Image, width int) int {
	total := 0
	for i, m := range images {
		if total += max(m.Width, 0) + len(gap); total-len(gap) > width && i > 0 {
			return i
		}
	}
	return len(images)
}

func galleryRow(images []Image, color bool) string {
	drawn := make([][]string, len(images))
	height := 0
	for i, m := range images {
		drawn[i] = m.Lines(color)
		height = max(height, len(drawn[i]))
	}
	var b strings.Builder
	for y := range height {
		var line strings.Builder
		for i, lines := range drawn {
			cell := ""
			if y < len(lines) {
				cell = lines[y]
			}
			line.WriteString(padRight(cell, images[i].Width) + gap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String() + captions(images)
}

func captions(images []Image) string {
	var line strings.Builder
	for _, m := range images {
		line.WriteString(padRight(center(Truncate(m.Caption, m.Width), m.Width), m.Width) + gap)
	}
	s := strings.TrimRight(line.String(), " ")
	if s == "" {
		return ""
	}
	return s + "\n"
}
