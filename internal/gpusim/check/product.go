package check

// Product is a wgmma.mma_async as checks see it: the registers that it has until somebody has waited for it.
type Product struct {
	Site *Site
	D, A []int
}
