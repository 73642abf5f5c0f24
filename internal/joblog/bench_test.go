package joblog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/errortext"
)

// ordinary are lines of trainings in which nothing is of interest, as trainers, loggers and launchers print them.
var ordinary = []string{
	"{'loss': 1.2134, 'grad_norm': 0.5121, 'learning_rate': 2e-05, 'epoch': %d.1}",
	"[rank3]: step %d loss 2.3411 lr 3.00e-04 tokens/s 18234 mem 31.2 GiB",
	"[2024-05-11 13:11:27,885] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=1, lr=[1e-05], mom=[(0.9, 0.999)]",
	" 12%%|█▏        | %d/1000 [01:02<07:31,  1.95it/s, loss=1.93, v_num=0]",
	"2024-05-11 13:11:27 | INFO | train_inner | epoch 003: %d / 1205 loss=4.121, nll_loss=2.4, ppl=5.3, wps=41233.4, ups=3.12, wpb=13213",
	"INFO:root:iteration %d: the batch took 0.312 s, of which 0.041 s were the loader's",
	"node1:3063:3066 [0] NCCL INFO Channel %d/0 : 0[0] -> 1[1] via P2P/IPC/read",
	"0: Epoch: [3][%d/5005]\tTime  0.312 ( 0.315)\tData  0.001 ( 0.004)\tLoss 3.4411e+00 (3.51e+00)\tAcc@1  25.00 ( 24.13)",
}

// dense is all that testdata has of errors, here and of error texts.
func dense(b testing.TB) (lines []string) {
	b.Helper()
	files, err := filepath.Glob("../*/testdata/*.txt")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range append(files, "testdata/signs.txt") {
		if !strings.Contains(file, "errortext") && !strings.Contains(file, "signs") {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for in := bufio.NewScanner(f); in.Scan(); {
			if !strings.HasPrefix(in.Text(), "## ") {
				lines = append(lines, in.Text())
			}
		}
	}
	return lines
}

// TestWordsOfSigns: a line that a sign's expression matches has one of the sign's words, so that none is passed over.
func TestWordsOfSigns(t *testing.T) {
	for _, line := range dense(t) {
		_, line = originOf(line)
		var p parser
		p.look(line)
		for i := range signs {
			if signs[i].pattern.MatchString(line) && !slices.Contains(p.may, i) {
				t.Errorf("%s: %q has none of its words", signs[i].name, line)
			}
		}
	}
}

// BenchmarkLog reads a log of which nothing is of interest, one of which every line is, and one of a single line that looks
// like an error again and again.
func BenchmarkLog(b *testing.B) {
	read := func(name string, text string) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := (Reader{}).Diagnose(b.Context(), "rank0.log", io.LimitReader(strings.NewReader(text), int64(len(text)))); err != nil && !errors.Is(err, errortext.ErrUnknown) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(strings.Count(text, "\n"))*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, ordinary[i%len(ordinary)]+"\n", i)
	}
	read("ordinary", text.String())
	for i, line := range ordinary {
		read(fmt.Sprintf("ordinary-%d", i), strings.Repeat(fmt.Sprintf(line, 100)+"\n", 2000))
	}
	read("dense", strings.Repeat(strings.Join(dense(b), "\n")+"\n", 3))
	read("alike", "[rank0]: step 1 loss 2\n"+strings.Repeat("[rank3]: WARNING: CUDA memory of device 3 is 91 % full, error rate 0.1, expected tensor of worker 7\n", 5000))
}
