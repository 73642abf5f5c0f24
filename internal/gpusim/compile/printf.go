package compile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
)

// printfSource is where the arguments of a printf come from: numbers of 4 or 8 bytes in order, and strings by address.
type printfSource struct {
	number func(size int) uint64
	text   func(addr uint64) string
}

// printfBytes is what C's printf prints. A conversion that C does not know is printed as it is.
func printfBytes(format string, from printfSource) (out []byte) {
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			return append(out, format...)
		}
		out = append(out, format[:i]...)
		c, n := parseConversion(format[i:], from)
		if n == 0 {
			return append(out, format[i:]...)
		}
		s, ok := c.print(from)
		if !ok {
			s = format[i:][:n]
		}
		out = append(out, s...)
		format = format[i+n:]
	}
}

// conversion is %[flags][width][.precision][length]verb.
type conversion struct {
	left, plus, space, alt, zero bool

	width, precision int // precision is -1 without
	size             int // bytes of an integer
	verb             byte
}

// maxField bounds the widths and precisions that a kernel asks for.
const maxField = 1 << 12

// parseConversion reads one from the start of s and returns how long it is; 0 if it does not end.
func parseConversion(s string, from printfSource) (c conversion, n int) {
	c = conversion{precision: -1, size: 4}
	at := 1 + c.parseFlags(s[1:])
	number := func() int {
		if at < len(s) && s[at] == '*' {
			at++
			return min(max(int(int32(from.number(4))), -maxField), maxField)
		}
		v := 0
		for ; at < len(s) && s[at] >= '0' && s[at] <= '9'; at++ {
			v = min(10*v+int(s[at]-'0'), maxField)
		}
		return v
	}
	if c.width = number(); c.width < 0 {
		c.left, c.width = true, -c.width
	}
	if at < len(s) && s[at] == '.' {
		at++
		c.precision = max(number(), -1)
	}
	length := at
	for at < len(s) && strings.IndexByte("hljztL", s[at]) >= 0 {
		at++
	}
	switch s[length:at] {
	case "hh":
		c.size = 1
	case "h":
		c.size = 2
	case "l", "ll", "j", "z", "t", "L":
		c.size = 8
	}
	if at == len(s) {
		return c, 0
	}
	c.verb = s[at]
	return c, at + 1
}

func (c *conversion) parseFlags(s string) (n int) {
	for ; n < len(s); n++ {
		switch s[n] {
		case '-':
			c.left = true
		case '+':
			c.plus = true
		case ' ':
			c.space = true
		case '#':
			c.alt = true
		case '0':
			c.zero = true
		default:
			return n
		}
	}
	return n
}

func (c *conversion) print(from printfSource) (s string, ok bool) {
	switch c.verb {
	case '%':
		return "%", true
	case 'd', 'i':
		shift := 64 - 8*c.size
		v := int64(from.number(max(c.size, 4))<<shift) >> shift
		u := uint64(v)
		if v < 0 {
			u = -u
		}
		return c.integer(c.sign(v < 0), u, 10), true
	case 'u':
		return c.integer("", c.unsigned(from), 10), true
	case 'o':
		return c.integer("", c.unsigned(from), 8), true
	case 'x', 'X':
		return c.hexadecimal(c.unsigned(from)), true
	case 'c':
		return c.pad("", string([]byte{byte(from.number(4))}), false), true
	case 's':
		return c.text(from), true
	case 'p':
		if addr := from.number(8); addr != 0 {
			return c.pad("0x", strconv.FormatUint(addr, 16), false), true
		}
		return c.pad("", "(nil)", false), true
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		return c.float(math.Float64frombits(from.number(8))), true
	}
	return "", false
}

func (c *conversion) unsigned(from printfSource) uint64 {
	return from.number(max(c.size, 4)) & (math.MaxUint64 >> (64 - 8*c.size))
}

// sign is what stands before a number.
func (c *conversion) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

// pad fills up to the width, between prefix and body if with zeros.
func (c *conversion) pad(prefix, body string, zeros bool) string {
	missing := max(c.width-len(prefix)-len(body), 0)
	switch {
	case c.left:
		return prefix + body + strings.Repeat(" ", missing)
	case zeros:
		return prefix + strings.Repeat("0", missing) + body
	}
	return strings.Repeat(" ", missing) + prefix + body
}

// integer has at least as many digits as the precision says; that of 0 prints nothing for 0.
func (c *conversion) integer(prefix string, u uint64, base int) string {
	digits := strconv.FormatUint(u, base)
	if u == 0 && c.precision == 0 {
		digits = ""
	}
	digits = strings.Repeat("0", max(c.precision-len(digits), 0)) + digits
	if c.alt && base == 8 && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	return c.pad(prefix, digits, c.zero && c.precision < 0)
}

func (c *conversion) hexadecimal(u uint64) string {
	prefix := ""
	if c.alt && u != 0 {
		prefix = "0x"
	}
	s := c.integer(prefix, u, 16)
	if c.verb == 'X' {
		return strings.ToUpper(s)
	}
	return s
}

func (c *conversion) text(from printfSource) string {
	s := "(null)"
	if addr := from.number(8); addr != 0 {
		s = from.text(addr)
	}
	if c.precision >= 0 {
		s = s[:min(c.precision, len(s))]
	}
	return c.pad("", s, false)
}

func (c *conversion) float(v float64) string {
	sign, lower := c.sign(math.Signbit(v)), c.verb|0x20
	v = math.Abs(v)
	var body string
	finite := false
	switch {
	case v != v:
		body = "nan"
	case math.IsInf(v, 0):
		body = "inf"
	case lower == 'a':
		sign, body, finite = sign+"0x", c.hexFloat(v), true
	case lower == 'g':
		body, finite = c.general(v), true
	default:
		p := c.precision
		if p < 0 {
			p = 6
		}
		body, finite = c.point(strconv.FormatFloat(v, lower, p, 64)), true
	}
	s := c.pad(sign, body, c.zero && finite)
	if c.verb != lower {
		return strings.ToUpper(s)
	}
	return s
}

// point keeps the decimal point that # asks for.
func (c *conversion) point(s string) string {
	if !c.alt || strings.Contains(s, ".") {
		return s
	}
	mantissa, exponent, ok := strings.Cut(s, "e")
	if ok {
		return mantissa + ".e" + exponent
	}
	return s + "."
}

// general is %g: so many significant digits, with an exponent if it is below -4 or not below the precision.
func (c *conversion) general(v float64) string {
	p := c.precision
	switch {
	case p < 0:
		p = 6
	case p == 0:
		p = 1
	}
	s := strconv.FormatFloat(v, 'e', p-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	x, _ := strconv.Atoi(exponent)
	if x >= -4 && x < p {
		mantissa, exponent = strconv.FormatFloat(v, 'f', p-1-x, 64), ""
	} else {
		exponent = "e" + exponent
	}
	switch {
	case c.alt && !strings.Contains(mantissa, "."):
		mantissa += "."
	case !c.alt && strings.Contains(mantissa, "."):
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + exponent
}

// hexFloat is %a without sign and 0x: the first digit is 1, 0 for subnormals, or 2 where rounding carries, as glibc has it.
func (c *conversion) hexFloat(v float64) string {
	const stored = 52
	b := math.Float64bits(v)
	m, e := b&(1<<stored-1), int(b>>stored)-1023
	switch {
	case v == 0:
		e = 0
	case e == -1023:
		e = -1022
	default:
		m |= 1 << stored
	}
	digits := stored / 4
	if p := c.precision; p >= 0 && p < digits {
		drop := stored - 4*p
		q, rest := m>>drop, m&(1<<drop-1)
		if arith.RoundUp(q, rest, 1<<drop>>1, false, arith.RN) {
			q++
		}
		m, digits = q<<drop, p
	}
	fraction := fmt.Sprintf("%013x", m&(1<<stored-1))[:digits]
	if c.precision < 0 {
		fraction = strings.TrimRight(fraction, "0")
	}
	fraction += strings.Repeat("0", max(c.precision-len(fraction), 0))
	if fraction != "" || c.alt {
		fraction = "." + fraction
	}
	return fmt.Sprintf("%d%sp%+d", m>>stored, fraction, e)
}
