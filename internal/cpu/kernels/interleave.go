package kernels

// Apart takes a row apart by even and odd places: even has the place more that a row of an odd length has.
func Apart[T Float](even, odd, row []T) {
	n := len(row) / 2
	e, o := even[:n], odd[:n]
	if !apartAssembly(e, o, row) {
		for i := range o {
			pair := row[2*i:][:2]
			e[i], o[i] = pair[0], pair[1]
		}
	}
	if len(row)%2 > 0 {
		even[n] = row[2*n]
	}
}

// Weave is the reverse of [Apart].
func Weave[T Float](row, even, odd []T) {
	n := len(row) / 2
	e, o := even[:n], odd[:n]
	if !weaveAssembly(row, e, o) {
		for i, v := range o {
			pair := row[2*i:][:2]
			pair[0], pair[1] = e[i], v
		}
	}
	if len(row)%2 > 0 {
		row[2*n] = even[n]
	}
}
