package exercise

// puzzles are the kernels, easy ones first.
var puzzles = []puzzle{
	{
		name: "map", title: "Map: ten more", grid: "1", block: "64", inputs: []int{64}, output: 64,
		about:   "Each of 64 threads adds ten to an element: out[i] = a[i] + 10.",
		formula: "out[i] = a[i] + 10",
		hints:   []string{"the result is never written: out[i] is this thread's element", "load a[i], add 10, store to out[i]: ld.global.f32, add.f32, st.global.f32"},
		want:    func(in [][]float32) []float32 { return each(64, func(i int) float32 { return in[0][i] + 10 }) },
	},
	{
		name: "guard", title: "Guard: more threads than elements", grid: "2", block: "32", inputs: []int{50}, output: 50, numbers: []int{50},
		about:   "64 threads, 50 elements. Those beyond the end must do nothing.",
		formula: "out[i] = a[i] + 10 for each i < n, and nothing else",
		hints:   []string{"compare i with n before anything is read", "if (i < n); in PTX setp.ge.s32 and a branch to the end"},
		want:    func(in [][]float32) []float32 { return each(50, func(i int) float32 { return in[0][i] + 10 }) },
	},
	{
		name: "zip", title: "Zip: whose element is it?", grid: "3", block: "32", inputs: []int{90, 90}, output: 90, numbers: []int{90},
		about:   "Three blocks of 32 threads add 90 elements of a and b.",
		formula: "out[i] = a[i] + b[i], and i goes on from block to block",
		hints:   []string{"a thread's number counts within its block: all blocks work on the first 32 elements", "i = blockIdx.x * blockDim.x + threadIdx.x"},
		want:    func(in [][]float32) []float32 { return each(90, func(i int) float32 { return in[0][i] + in[1][i] }) },
	},
	{
		name: "rows", title: "Rows and columns", grid: "1", block: "16,8", inputs: []int{60}, output: 60, numbers: []int{5, 12},
		about:   "A matrix of 5 rows and 12 columns, row behind row, is doubled by a block of 16 × 8 threads.",
		formula: "out = 2 * a, both at row * columns + column",
		hints:   []string{"the next row begins as many elements further as there are columns", "row * columns + column"},
		want:    func(in [][]float32) []float32 { return each(60, func(i int) float32 { return 2 * in[0][i] }) },
	},
	{
		name: "broadcast", title: "Broadcast", grid: "1", block: "16,8", inputs: []int{5, 12}, output: 60, numbers: []int{5, 12},
		about:   "out[row, column] = a[row] + b[column], of 5 numbers and 12.",
		formula: "out[row * columns + column] = a[row] + b[column]",
		hints:   []string{"which of the two has a number for each row?", "a[row] + b[column]"},
		want: func(in [][]float32) []float32 {
			return each(60, func(i int) float32 { return in[0][i/12] + in[1][i%12] })
		},
	},
	{
		name: "stride", title: "Stride: more elements than threads", grid: "2", block: "32", inputs: []int{300}, output: 300, numbers: []int{300},
		about:   "64 threads square 300 elements: each takes every 64th.",
		formula: "out[i] = a[i] * a[i], for i = the thread's number among all 64, and each 64th from there",
		hints:   []string{"elements from the 65th on are left as they were: a thread has to go on", "for (…; i < n; i += gridDim.x * blockDim.x)"},
		want:    func(in [][]float32) []float32 { return each(300, func(i int) float32 { return in[0][i] * in[0][i] }) },
	},
	{
		name: "reverse", title: "Reverse: a barrier", grid: "2", block: "128", inputs: []int{256}, output: 256,
		about:   "Each block of 128 threads writes its elements to shared memory and reads them backwards.",
		formula: "out[t] = a[127 - t] within each block",
		hints:   []string{"a thread reads what another one writes: when is it there?", "__syncthreads() between the write and the read; bar.sync 0 in PTX"},
		want: func(in [][]float32) []float32 {
			return each(256, func(i int) float32 { return in[0][i/128*128+127-i%128] })
		},
	},
	{
		name: "pool", title: "Pool: a window of three", grid: "1", block: "128", inputs: []int{128}, output: 128, numbers: []int{128},
		about:   "out[i] = a[i−2] + a[i−1] + a[i], of those that there are, by way of shared memory.",
		formula: "out[i] = a[i-2] + a[i-1] + a[i], of those that there are",
		hints:   []string{"the first two threads have fewer neighbours", "add tile[t - 1] only if t >= 1, and tile[t - 2] only if t >= 2"},
		want: func(in [][]float32) []float32 {
			return each(128, func(i int) (s float32) {
				for k := max(0, i-2); k <= i; k++ {
					s += in[0][k]
				}
				return s
			})
		},
	},
	{
		name: "dot", title: "Dot: halves are added up", grid: "1", block: "128", inputs: []int{100, 100}, output: 1, numbers: []int{100},
		about:   "The dot product of 100 elements: products go to shared memory, and in each round half of the threads add the other half.",
		formula: "all 128 parts are added up, in seven rounds of 64, 32, … 1 threads",
		hints:   []string{"a round reads what the one before has written", "a __syncthreads() at the end of each round, outside of the if"},
		want: func(in [][]float32) []float32 {
			var s float32
			for i := range 100 {
				s += in[0][i] * in[1][i]
			}
			return []float32{s}
		},
	},
	{
		name: "convolution", title: "Convolution", grid: "2", block: "64", inputs: []int{100, 5}, output: 96, numbers: []int{100, 5},
		about:   "out[i] is the sum of a[i+k]·w[k] over five taps, for the 96 places where all of them have an element.",
		formula: "out[i] = the sum of a[i + k] * w[k] over all taps, for i up to n - taps",
		hints:   []string{"the last place is n − taps: beyond it a has no element", "leave the kernel where i > n - taps, before the loop"},
		want: func(in [][]float32) []float32 {
			return each(96, func(i int) (s float32) {
				for k := range 5 {
					s += in[0][i+k] * in[1][k]
				}
				return s
			})
		},
	},
	{
		name: "scan", title: "Scan: sums so far", grid: "1", block: "128", inputs: []int{128}, output: 128,
		about:   "out[i] = a[0] + … + a[i]: in round k each element adds the one 2ᵏ before it.",
		formula: "out[i] = a[0] + … + a[i], in rounds with steps of 1, 2, 4, … 64",
		hints:   []string{"in one round some threads read what others have changed already", "read into a register, __syncthreads(), then write, and __syncthreads() again"},
		want: func(in [][]float32) []float32 {
			var s float32
			return each(128, func(i int) float32 { s += in[0][i]; return s })
		},
	},
	{
		name: "transpose", title: "Transpose: without bank conflicts", grid: "1", block: "32,32", inputs: []int{1024}, output: 1024, quiet: true,
		about:   "A matrix of 32 × 32 is transposed by way of shared memory. The numbers are right from the beginning; what is to be mended are its bank conflicts.",
		formula: "out[y * 32 + x] = a[x * 32 + y]",
		hints:   []string{"elements of a column lie 32 apart, all in one of 32 banks: what if rows were a little longer?", "tile[32][33]: one element of padding moves each row by a bank"},
		want:    func(in [][]float32) []float32 { return each(1024, func(i int) float32 { return in[0][i%32*32+i/32] }) },
	},
	{
		name: "matmul", title: "Matrix product by tiles", grid: "2,2", block: "16,16", inputs: []int{1024, 1024}, output: 1024, numbers: []int{32},
		about:   "Two matrices of 32 × 32 are multiplied by tiles of 16 × 16 in shared memory, each of which is used 16 times.",
		formula: "out = the sum of as[y][i] * bs[i][x] over 16 elements of each tile of a row and a column",
		hints:   []string{"who writes the next tile, while who still reads this one?", "a second __syncthreads() at the end of the loop's body"},
		want: func(in [][]float32) []float32 {
			return each(1024, func(i int) (s float32) {
				for k := range 32 {
					s += in[0][i/32*32+k] * in[1][k*32+i%32]
				}
				return s
			})
		},
	},
}

// each is n values of f.
func each(n int, f func(i int) float32) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}
