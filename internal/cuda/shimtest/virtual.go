package shimtest

import "github.com/warpline-ml/warpline/internal/cuda/driver"

// virtualHandlers are those of memory apart from addresses.
var virtualHandlers = map[string]handler{
	"cuMemGetAllocationGranularity": func(a *driver.API, w []uint64) driver.Result {
		return give[int64](w)(a.MemGetAllocationGranularity(device(w[0]), driver.Granularity(w[1])))
	},
	"cuMemAddressReserve": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Ptr](w)(a.MemAddressReserve(int64(w[0]), int64(w[1]), driver.Ptr(w[2])))
	},
	"cuMemAddressFree": func(a *driver.API, w []uint64) driver.Result {
		return a.MemAddressFree(driver.Ptr(w[0]), int64(w[1]))
	},
	"cuMemCreate": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.MemHandle](w)(a.MemCreate(int64(w[0]), device(w[1])))
	},
	"cuMemRelease": func(a *driver.API, w []uint64) driver.Result { return a.MemRelease(driver.MemHandle(w[0])) },
	"cuMemMap": func(a *driver.API, w []uint64) driver.Result {
		return a.MemMap(driver.Ptr(w[0]), int64(w[1]), int64(w[2]), driver.MemHandle(w[3]))
	},
	"cuMemUnmap": func(a *driver.API, w []uint64) driver.Result { return a.MemUnmap(driver.Ptr(w[0]), int64(w[1])) },
	"cuMemSetAccess": func(a *driver.API, w []uint64) driver.Result {
		return a.MemSetAccess(driver.Ptr(w[0]), int64(w[1]), device(w[2]), driver.Access(w[3]))
	},
}
