package check

// Omission is what a launch left out of its report.
type Omission uint8

// What may be left out.
const (
	OmitsFindings Omission = 1 << iota
	OmitsSources
	omitsStale
	omitsPages
	omitsPlaces
	splitVectors
)

var omissions = []string{
	"there are more kinds of findings than a report lists",
	"writes to what cp.async reads were not all looked at: a block ended more copies between barriers than are remembered",
	"writes to what ld.global.nc reads were not looked at: the kernel has too many accesses",
	"accesses to some of the global memory were not looked at for races: the launch touches more than is remembered",
	"what orders accesses was taken for granted at some places in global memory: threads talk by way of more than are remembered",
	"a vector that other blocks write is waited for: PTX takes it for several accesses, which may be seen apart; cards see 16 aligned bytes at once",
}

// Notes says what was left out.
func (o Omission) Notes() (list []string) {
	for i, text := range omissions {
		if o>>i&1 == 1 {
			list = append(list, text)
		}
	}
	return list
}
