package model_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// asPyTorchs are the golden values of a model, which gets its weights, and its pictures, which learn.
func asPyTorchs(t *testing.T, env *tensor.Env, path string, m any) (want map[string]*tensor.Tensor, x *tensor.Tensor) {
	t.Helper()
	want = golden.Tensors(t, env, path)
	for name, p := range nn.Params(m) {
		v := want["param."+name]
		if v == nil {
			t.Fatalf("PyTorch's has no %s", name)
		}
		p.Replace(v.Clone())
	}
	return want, want["x"].RequireGrad()
}

// learnsAs compares a loss and all gradients.
func learnsAs(t *testing.T, m any, want map[string]*tensor.Tensor, loss, x *tensor.Tensor) {
	t.Helper()
	loss.Backward()
	within(t, "loss", loss.Item(), want["loss"].Item(), 1e-5)
	const bar = 1e-5
	if d := apart(x.Grad(), want["grad.x"]); d > bar {
		t.Errorf("the gradient of the pictures is %.2g apart", d)
	}
	for name, p := range nn.Params(m) {
		if d := apart(p.Grad(), want["grad."+name]); d > bar {
			t.Errorf("the gradient of %s is %.2g apart", name, d)
		}
	}
}

// TestUNet compares with a U-Net in PyTorch: scores, and gradients of their cross entropy.
func TestUNet(t *testing.T) {
	env := open(t)
	m := model.NewUNet(env, model.ImageConfig{Channels: 2, Height: 8, Width: 12, Classes: 4}, model.UNetConfig{Base: 3, Halvings: 2})
	want, x := asPyTorchs(t, env, "testdata/pictures/unet.safetensors", m)
	y := m.Forward(x)
	golden.Close(t, "scores", y, want["y"], 1e-4, 1e-5)
	learnsAs(t, m, want, nn.CrossEntropy(y, want["labels"]), x)
}

// TestVAE compares with PyTorch's example: codes, logits, both terms of the bound, and their gradients, for the same noise.
func TestVAE(t *testing.T) {
	env := open(t)
	m := model.NewVAE(env, model.ImageConfig{Channels: 1, Height: 5, Width: 4}, model.VAEConfig{Hidden: 7, Code: 3})
	want, x := asPyTorchs(t, env, "testdata/pictures/vae.safetensors", m)
	mean, logvar := m.Encode(x)
	golden.Close(t, "means", mean, want["mean"], 1e-5, 1e-6)
	golden.Close(t, "logarithms of variances", logvar, want["logvar"], 1e-5, 1e-6)
	y := m.Decode(mean.Add(logvar.Scale(0.5).Exp().Mul(want["noise"])))
	golden.Close(t, "logits", y, want["y"], 1e-5, 1e-5)
	reconstruction := nn.BCEWithLogits(y, x, nn.Summed()).Scale(1. / 3)
	_, codes := m.Bound(x)
	within(t, "reconstruction", reconstruction.Item(), want["reconstruction"].Item(), 1e-5)
	within(t, "cost of codes", codes.Item(), want["codes"].Item(), 1e-5)
	learnsAs(t, m, want, reconstruction.Add(codes), x)
}
