package bench

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/render"
)

func (t *Term) row() []string {
	return []string{t.Op, fmt.Sprint(t.Kernels), fmt.Sprintf("%.1f", float64(t.FLOPs)/1e9), fmt.Sprintf("%.2f", float64(t.Bytes)/1e9),
		ms(t.Compute), ms(t.Memory), ms(t.Launch), ms(t.Seconds())}
}

func ms(seconds float64) string { return fmt.Sprintf("%.2f", 1e3*seconds) }

// Text is rows as a table.
func Text(rows []Row, width int) string {
	t := render.Table{Header: []string{"case", "n", "dtype", "rate", "low", "high", "", "time", "of the ceiling"},
		Right: []bool{false, true, false, true, true, true, false, true, true}, Spare: []int{5, 4, 2}}
	for i := range rows {
		t.Rows = append(t.Rows, rows[i].cells())
	}
	if len(rows) > 0 && rows[0].MS == 0 { // a bench of rates alone
		t.Header, t.Right = slices.Delete(t.Header, 7, 8), slices.Delete(t.Right, 7, 8)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], 7, 8)
		}
	}
	return t.String(width)
}

func (r *Row) cells() []string {
	time, share := "", ""
	if r.MS > 0 {
		time = duration(r.MS)
	}
	if r.Share != nil {
		share = fmt.Sprintf("%.0f %% of %s", 100**r.Share, figure(*r.Ceiling))
	}
	return []string{r.Case, fmt.Sprint(r.N), r.DType, figure(r.Median), figure(r.Low), figure(r.High), r.Unit, time, share}
}

// Parts is the text of what a row alone is worth: the terms of a model, or where the time went; "" if there is neither.
func (r *Row) Parts(width int) string {
	switch {
	case r.Model != nil:
		return r.Model.Text(width)
	case r.Profile != nil && len(r.Profile.Parts) > 1:
		return r.Profile.Text(width)
	}
	return ""
}

// figure has three digits at least.
func figure(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func duration(ms float64) string {
	switch {
	case ms < 1e-3:
		return fmt.Sprintf("%.0f ns", 1e6*ms)
	case ms < 1:
		return fmt.Sprintf("%.1f µs", 1e3*ms)
	}
	return figure(ms) + " ms"
}
