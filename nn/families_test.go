package nn

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// families are the files of bench/pytorch/layers_reference.py, with the fewest cases that each has.
var families = map[string]int{"losses": 120, "losses_margin": 180, "activations": 120, "norms": 30, "lstm": 27, "gru": 21, "rnn": 27, "cells": 70, "attention_functional": 50, "attention_layers": 45, "transformer": 36, "convolutions": 40, "interpolate": 150, "windows": 80, "core": 220, "nothing": 32, "options_recurrent": 35, "options_attention": 40, "options_convolution": 40, "options_losses": 75, "adapt": 85}

// TestFamilies compares layers and losses with PyTorch over all their options: outputs, gradients, second derivatives, of
// inputs that lie row-major and others.
func TestFamilies(t *testing.T) {
	for name, least := range families {
		t.Run(name, func(t *testing.T) {
			var index struct{ Cases []goldenCase }
			golden.JSON(t, "testdata/"+name+".json", &index)
			if len(index.Cases) < least {
				t.Fatalf("only %d cases", len(index.Cases))
			}
			env := freshEnv(t)
			all := golden.Tensors(t, env, "testdata/"+name+".safetensors")
			for i, c := range index.Cases {
				t.Run(c.Name, func(t *testing.T) {
					c.t = map[string]*tensor.Tensor{}
					for path, v := range all {
						if short, ok := strings.CutPrefix(path, c.Name+":"); ok {
							c.t[short] = deeply(name, v)
						}
					}
					for _, c.strided = range []bool{i%2 == 0, i%2 == 1} {
						c.family(t)
						if testutil.Device() != "cpu" { // where one layout each takes long enough
							break
						}
					}
					c.unrecorded(t, env)
				})
			}
		})
	}
}

// deeply is a value as float64 where a family goes so deep that second derivatives in float32 are mostly rounding.
func deeply(family string, v *tensor.Tensor) *tensor.Tensor {
	if (family == "transformer" || family == "options_attention") && v.DType().IsFloat() {
		return v.Cast(dtype.F64)
	}
	return v
}

// family runs a case with both derivatives.
func (c *goldenCase) family(t *testing.T) {
	c.params = map[string]*tensor.Tensor{}
	in := c.leaves()
	f := forwards[c.Layer]
	if f == nil {
		t.Fatalf("no layer for %s", c.Layer)
	}
	total := c.weigh(t, f(c, in))
	if total == nil {
		return
	}
	maps.Copy(in, c.params)
	for name, got := range c.t {
		if short, ok := strings.CutPrefix(name, "got."); ok {
			golden.Close(t, short, got, c.t["out."+short], 1e-5, 1e-6)
		}
	}
	names, leaves := []string{}, []*tensor.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if c.t["grad."+name] != nil {
			names, leaves = append(names, name), append(leaves, in[name])
		}
	}
	if len(names) == 0 {
		t.Fatal("no gradient is checked")
	}
	if c.t["turn."+names[0]] == nil {
		for i, g := range tensor.Grad(total, leaves...) {
			golden.Close(t, "grad."+names[i], g, c.t["grad."+names[i]], 2e-5, 1e-5)
		}
		return
	}
	c.second(t, names, leaves, tensor.GradGraph(total, leaves...))
}

// second compares gradients, and those of their sum with the case's weights.
func (c *goldenCase) second(t *testing.T, names []string, leaves, grads []*tensor.Tensor) {
	var turned *tensor.Tensor
	for i, name := range names {
		if grads[i] == nil {
			grads[i] = leaves[i].ZerosLike()
		}
		golden.Close(t, "grad."+name, grads[i], c.t["grad."+name], 2e-5, 1e-5)
		part := grads[i].Mul(c.t["turn."+name]).Sum()
		if turned == nil {
			turned = part
		} else {
			turned = turned.Add(part)
		}
	}
	var seconds []*tensor.Tensor
	if turned.Recorded() {
		seconds = tensor.Grad(turned, leaves...)
	} else {
		seconds = make([]*tensor.Tensor, len(leaves))
	}
	for i, name := range names {
		if seconds[i] == nil {
			seconds[i] = leaves[i].ZerosLike()
		}
		golden.Close(t, "second."+name, seconds[i], c.t["second."+name], 1e-4, 5e-5)
	}
}

func (a attrs) text(key string) string {
	s, _ := a[key].(string)
	return s
}

// extended is number for what may be infinite.
func (a attrs) extended(key string, or float64) float64 {
	if a[key] == "inf" {
		return math.Inf(1)
	}
	return a.number(key, or)
}

func (a attrs) flag(key string) bool { return a[key] == true }

func (a attrs) int(key string, or int) int { return int(a.number(key, float64(or))) }

// scalar is a forward of one result.
func scalar(f func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor) forward {
	return func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(c, in)} }
}
