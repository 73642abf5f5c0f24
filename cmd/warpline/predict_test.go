package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/train"
)

// TestPredict: every task that predicts says of each input a line for people, and a line of JSON with its fields and the files that it
// names.
func TestPredict(t *testing.T) {
	r := newRoom(t)
	var rows strings.Builder
	rows.WriteString("colour,size,price,kind\n")
	for i := range 60 {
		fmt.Fprintf(&rows, "%s,%d,%d,%s\n", []string{"red", "green", ""}[i%3], i, 3*i+i%3, []string{"small", "large"}[i/30])
	}
	r.file("rows.csv", []byte(rows.String()))
	r.file("asked.csv", []byte("colour,size\nred,3\n,50\n"))
	r.file("text.txt", []byte(strings.Repeat("a text of which the next character is asked. ", 60)))
	grey := image.NewGray(image.Rect(0, 0, 40, 30))
	for i := range grey.Pix {
		grey.Pix[i] = color.Gray{Y: uint8(i * 7)}.Y
	}
	var picture bytes.Buffer
	r.check(png.Encode(&picture, grey))
	r.file("picture.png", picture.Bytes())

	picturesOf := func(task string) []string {
		return []string{task + " --steps 1 --batch 4", "picture.png", "class probability classes"}
	}
	cases := map[string][][]string{ // by task: flags of training, the input, fields of the answer
		"tabular": {{"tabular --data rows.csv --target price --epochs 1 --drop kind", "asked.csv", "line value"},
			{"tabular --data rows.csv --target kind --epochs 1 --drop price", "asked.csv", "line class probability classes"}},
		"gpt":  {{"gpt --data text.txt --steps 1 --context 8 --layers 1 --width 16 --heads 2", "a te", "class probability classes"}},
		"lstm": {{"lstm --data text.txt --steps 1 --context 8 --layers 1 --width 16 --batch 4", "a te", "class probability classes"}},
		"unet": {{"unet --steps 1 --batch 2", "picture.png", "areas mask overlay"}},
		"vae":  {{"vae --steps 1 --batch 4", "picture.png", "reconstruction error elbo"}},
		"mlp":  {picturesOf("mlp")}, "digits": {picturesOf("digits")}, "resnet18": {picturesOf("resnet18 --data pictures.npz")},
		"resnet50": nil, // takes long, as resnet18 does it
		"vit":      {picturesOf("vit")},
		"triage":   nil, // tickets are drawn: nobody can write one
	}
	r.npz("pictures.npz", images(bytesArray(20, 3, 8, 8)), marks(labels(20)))
	for _, task := range train.Tasks {
		of, known := cases[task]
		if !known {
			t.Errorf("%s has no row", task)
		}
		for i, c := range of {
			t.Run(fmt.Sprint(task, i), func(t *testing.T) {
				r := &room{t, r.dir}
				run := fmt.Sprintf("run-%s%d", task, i)
				r.good(append(append([]string{"train"}, strings.Fields(c[0])...), "--out", run)...)
				inputs := 1
				if c[1] == "asked.csv" {
					inputs = 2
				}
				status, text, stderr := command(t.Context(), "predict", run, c[1], "--out", "for-people")
				if task != "unet" && task != "vae" {
					status, text, stderr = command(t.Context(), "predict", run, c[1])
				}
				if status != exitDone || strings.Count(text, "\n") != inputs || !strings.Contains(text, c[1]) {
					t.Errorf("status %d\n%s%s", status, text, stderr)
				}
				status, stdout, stderr := command(t.Context(), "predict", run, c[1], "--json")
				lines := decode(t, stdout)
				if status != exitDone || len(lines) != inputs {
					t.Fatalf("status %d, %d lines\n%s%s", status, len(lines), stdout, stderr)
				}
				for _, line := range lines {
					has(t, line, append(strings.Fields(c[2]), "input")...)
					for _, made := range []string{"mask", "overlay", "reconstruction"} {
						if path, ok := line[made].(string); ok {
							if _, err := os.Stat(path); err != nil {
								t.Error(err)
							}
						}
					}
				}
			})
		}
	}
}
