// Package render draws for people: tables, bars, curves and pictures in a terminal,
// curves as SVG, and quantities in words. It returns strings and writes nowhere; the
// caller knows the width and whether colours are wanted.
//
// No input is an error: what cannot be drawn (NaN, infinities, a logarithm of zero,
// an empty series) is left out.
package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// significant formats x ≥ 0 with three significant digits, or all integer digits.
func significant(x float64) string {
	decimals := 0
	switch {
	case x < 9.995:
		decimals = 2
	case x < 99.95:
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// scaled divides n by base until it is below, and returns the number and the unit.
func scaled(n, base float64, units []string) (string, string) {
	i := 0
	for i < len(units)-1 && math.Abs(n) >= base*0.9995 {
		n /= base
		i++
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if i == 0 {
		return sign + strconv.FormatFloat(n, 'f', -1, 64), units[0]
	}
	return sign + significant(n), units[i]
}

// Bytes formats a number of bytes in binary units: "512 B", "1.50 KiB", "12.3 GiB".
func Bytes(n int64) string {
	number, unit := scaled(float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
	return number + " " + unit
}

// units of bytes as people write them: powers of ten and of two.
var units = map[string]int64{"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}

// ParseBytes reads a number of bytes: "4096", "64KiB", "1.5 GB". KB, MB and GB are powers of ten, KiB and K of two.
func ParseBytes(text string) (int64, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := units[strings.TrimSpace(word[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n >= 0 && n*float64(unit) < 1<<62) {
		return 0, fmt.Errorf("%q is no number of bytes, such as 64KiB or 1.5GB", text)
	}
	return int64(n * float64(unit)), nil
}

// Count formats a number of things: "999", "1.23k", "124M", "1.50G".
func Count(n int64) string {
	number, unit := scaled(float64(n), 1000, []string{"", "k", "M", "G", "T", "P", "E"})
	return number + unit
}

// Rate formats a number of things in a unit of time, which may be less than one: "0.031", "5.30", "1.23k".
func Rate(f float64) string {
	switch {
	case !(f > 0):
		return "0"
	case f < 0.995:
		return strconv.FormatFloat(f, 'g', 2, 64)
	case f < 99.95:
		return significant(f)
	case f >= math.MaxInt64:
		return "∞"
	}
	return Count(int64(f))
}

// Duration formats a time with about three digits: "850 ns", "12.3 ms", "4.56 s",
// "3m05s", "2h07m", "4d03h".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-max(d, -math.MaxInt64))
	}
	switch s := d.Round(time.Second); {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond-500*time.Nanosecond:
		return significant(float64(d)/1e3) + " µs"
	case d < time.Second-500*time.Microsecond:
		return significant(float64(d)/1e6) + " ms"
	case s < time.Minute:
		return significant(d.Seconds()) + " s"
	case s < time.Hour:
		return fmt.Sprintf("%dm%02ds", s/time.Minute, s%time.Minute/time.Second)
	case s < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", s/time.Hour, s%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", s/(24*time.Hour), s%(24*time.Hour)/time.Hour)
	}
}

// Percent formats a fraction: 0.9725 is "97.25 %". NaN is "–".
func Percent(fraction float64) string {
	if math.IsNaN(fraction) {
		return "–"
	}
	return strconv.FormatFloat(100*fraction, 'f', 2, 64) + " %"
}

// Signed formats a difference of times: "+12.3 ms", "−5 ns", "0".
func Signed(d time.Duration) string {
	switch {
	case d > 0:
		return "+" + Duration(d)
	case d < 0:
		return "−" + Duration(-d)
	}
	return "0"
}

// Ratio formats after for before as people read it: "0.41×", "same" within half a percent, "new" and "gone" where one is 0.
func Ratio(before, after time.Duration) string {
	switch {
	case before == 0 && after == 0:
		return ""
	case before == 0:
		return "new"
	case after == 0:
		return "gone"
	}
	r := float64(after) / float64(before)
	if math.Abs(r-1) < 0.005 {
		return "same"
	}
	return fmt.Sprintf("%.2f×", r)
}
