package main

import (
	"github.com/warpline-ml/warpline/nn"
)

// spatial are layers without parameters of sequences and pictures, and convolutions that are made of others.
func spatial() map[string]op {
	return map[string]op{
		"conv1d": {(*drawer).conv1d, func(in ts, a *Attrs) ts {
			return only((&nn.Conv1d{Weight: in[1], Bias: third(in), Stride: a.N[0], Padding: a.N[1], Dilation: a.N[2], Groups: a.N[3]}).Forward(in[0]))
		}},
		"conv_transpose1d": {(*drawer).convTranspose1d, func(in ts, a *Attrs) ts {
			return only((&nn.ConvTranspose1d{Weight: in[1], Bias: third(in), Stride: a.N[0], Padding: a.N[1], Dilation: a.N[2], Groups: a.N[3], OutputPadding: a.N[4]}).Forward(in[0]))
		}},
		"interpolate": {(*drawer).interpolate, func(in ts, a *Attrs) ts { return only(upsampleOf(a).Forward(in[0])) }},
		"pad_mode": {(*drawer).padMode, func(in ts, a *Attrs) ts {
			return only(nn.Pad{Sides: a.N, Mode: padModes[a.Word], Value: float64(a.P)}.Forward(in[0]))
		}},
		"pixel_shuffle": {
			func(d *drawer) {
				r := 1 + d.IntN(3)
				d.c.Attrs.N = []int{r}
				d.filled(d.any(), append(d.shape(0, 2), r*r*(1+d.IntN(2)), 1+d.IntN(3), 1+d.IntN(3)))
			},
			func(in ts, a *Attrs) ts { return only(nn.PixelShuffle{By: a.N[0]}.Forward(in[0])) },
		},
		"pixel_unshuffle": {
			func(d *drawer) {
				r := 1 + d.IntN(3)
				d.c.Attrs.N = []int{r}
				d.filled(d.any(), []int{1 + d.IntN(3), 1 + d.IntN(2), r * (1 + d.IntN(2)), r * (1 + d.IntN(3))}) // PyTorch leaves empty ones as they are
			},
			func(in ts, a *Attrs) ts { return only(nn.PixelUnshuffle{By: a.N[0]}.Forward(in[0])) },
		},
		"channel_shuffle": {
			func(d *drawer) {
				g := 1 + d.IntN(3)
				d.c.Attrs.N = []int{g}
				d.filled(d.any(), []int{1 + d.IntN(2), g * (1 + d.IntN(3)), 1 + d.IntN(3), 1 + d.IntN(2)})
			},
			func(in ts, a *Attrs) ts { return only(nn.ChannelShuffle{Groups: a.N[0]}.Forward(in[0])) },
		},
		"unfold": {(*drawer).windows, func(in ts, a *Attrs) ts { return only(nn.Unfold{Windows: windowsOf(a)}.Forward(in[0])) }},
		"fold": {
			func(d *drawer) {
				d.windows()
				o, a := &d.c.In[0], &d.c.Attrs
				a.Shape = o.Shape[2:]
				n, c, area := o.Shape[0], o.Shape[1], a.N[0]*a.N[1]
				rows := (o.Shape[2]+2*a.N[4]-a.N[6]*(a.N[0]-1)-1)/a.N[2] + 1
				cols := (o.Shape[3]+2*a.N[5]-a.N[7]*(a.N[1]-1)-1)/a.N[3] + 1
				d.c.In = nil
				d.add(d.float(), []int{n, c * area, rows * cols}, d.normal)
			},
			func(in ts, a *Attrs) ts {
				return only(nn.Fold{Size: [2]int{a.Shape[0], a.Shape[1]}, Windows: windowsOf(a)}.Forward(in[0]))
			},
		},
		"adaptive_avg_pool": {(*drawer).adaptive, func(in ts, a *Attrs) ts { return only(nn.AdaptiveAvgPool{Size: a.N}.Forward(in[0])) }},
		"adaptive_max_pool": {(*drawer).adaptive, func(in ts, a *Attrs) ts { return only(nn.AdaptiveMaxPool{Size: a.N}.Forward(in[0])) }},
	}
}

func (d *drawer) conv1d() {
	dt, groups := d.float(), 1+d.IntN(2)
	in, out, k := groups*(1+d.IntN(2)), groups*(1+d.IntN(3)), 1+d.IntN(3)
	a := &d.c.Attrs
	a.N = []int{1 + d.IntN(3), d.IntN(2), 1 + d.IntN(2), groups}
	d.add(dt, []int{1 + d.IntN(2), in, a.N[2]*(k-1) + 1 + d.IntN(5)}, d.normal)
	d.add(dt, []int{out, in / groups, k}, d.plain)
	if d.IntN(2) == 0 {
		d.add(dt, []int{out}, d.plain)
	}
}

func (d *drawer) convTranspose1d() {
	dt, groups := d.float(), 1+d.IntN(2)
	in, out := groups*(1+d.IntN(2)), groups*(1+d.IntN(3))
	a := &d.c.Attrs
	a.N = []int{1 + d.IntN(3), d.IntN(2), 1 + d.IntN(2), groups}
	a.N = append(a.N, d.IntN(max(a.N[0], a.N[2])))
	d.add(dt, []int{1 + d.IntN(2), in, 2 + d.IntN(4)}, d.normal)
	d.add(dt, []int{in, out / groups, 2 + d.IntN(2)}, d.plain)
	if d.IntN(2) == 0 {
		d.add(dt, []int{out}, d.plain)
	}
}

var (
	padModes     = map[string]nn.PadMode{"constant": nn.PadConstant, "reflect": nn.PadReflect, "replicate": nn.PadReplicate, "circular": nn.PadCircular}
	upsampleForm = []string{"nearest", "nearest-exact", "bilinear", "bicubic", "area"}
)

// interpolate draws sizes in N and Flag, or factors in quarters in Axes; Q is 1 for corners, P for windows.
func (d *drawer) interpolate() {
	a := &d.c.Attrs
	mode := d.IntN(len(upsampleForm))
	a.Word = upsampleForm[mode]
	s := []int{1 + d.IntN(2), 1 + d.IntN(2), 1 + d.IntN(6), 1 + d.IntN(6)}
	smooth := mode == 2 || mode == 3
	if a.Q = num(d.IntN(2)); !smooth {
		a.Q = 0
	}
	if smooth && d.IntN(3) == 0 {
		a.P = 1
	}
	if a.P == 1 {
		s[3]++ // PyTorch repeats the first row where the result is one wide
	}
	if d.IntN(2) == 0 {
		a.N = []int{1 + d.IntN(9), 1 + int(a.P) + d.IntN(8)}
	} else {
		factors := []int{4, 8, 12, 6, 10, 16}
		for range 2 {
			a.Axes = append(a.Axes, factors[d.IntN(len(factors))])
		}
		a.Flag = d.IntN(3) == 0
	}
	draw := d.plain // curves of large numbers cancel
	if mode != 3 && a.P == 0 {
		draw = d.normal
	}
	d.add(d.float(), s, draw)
}

func upsampleOf(a *Attrs) nn.Upsample {
	l := nn.Upsample{Size: a.N, AlignCorners: a.Q == 1, Antialias: a.P == 1, Recompute: a.Flag}
	for i, m := range upsampleForm {
		if m == a.Word {
			l.Mode = nn.UpsampleMode(i)
		}
	}
	for _, quarters := range a.Axes {
		l.Scale = append(l.Scale, float64(quarters)/4)
	}
	return l
}

func (d *drawer) padMode() {
	a := &d.c.Attrs
	a.Word = []string{"constant", "reflect", "replicate", "circular"}[d.IntN(4)]
	s := []int{1 + d.IntN(2), 1 + d.IntN(2), 3 + d.IntN(4), 3 + d.IntN(4)}
	for range 2 {
		a.N = append(a.N, d.IntN(4)-1, d.IntN(4)-1)
	}
	dt := d.any()
	if a.Word == "constant" {
		d.p(0, 1, 2)
	} else {
		dt = d.float()
	}
	d.filled(dt, s)
}

func (d *drawer) windows() {
	a := &d.c.Attrs
	kh, kw := 1+d.IntN(3), 1+d.IntN(3)
	a.N = []int{kh, kw, 1 + d.IntN(2), 1 + d.IntN(2), d.IntN(2), d.IntN(2), 1 + d.IntN(2), 1 + d.IntN(2)}
	d.add(d.float(), []int{1 + d.IntN(2), 1 + d.IntN(2), a.N[6]*(kh-1) + 1 + d.IntN(3), a.N[7]*(kw-1) + 1 + d.IntN(3)}, d.normal)
}

func windowsOf(a *Attrs) nn.Windows {
	return nn.Windows{Kernel: [2]int{a.N[0], a.N[1]}, Stride: [2]int{a.N[2], a.N[3]}, Padding: [2]int{a.N[4], a.N[5]}, Dilation: [2]int{a.N[6], a.N[7]}}
}

func (d *drawer) adaptive() {
	d.c.Attrs.N = []int{1 + d.IntN(6), 1 + d.IntN(6)}
	d.add(d.float(), []int{1 + d.IntN(2), 1 + d.IntN(2), 1 + d.IntN(7), 1 + d.IntN(7)}, d.apart)
}
