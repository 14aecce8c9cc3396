package bloom

import (
	"fmt"
	"math"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

func TestInfoCountsFiltersAndBits(t *testing.T) {
	var keys [][]byte
	for i := range 4000 {
		keys = append(keys, fmt.Appendf(nil, "key%06d", i))
	}
	data := write(t, Options{BlockBytes: 4096, FalsePositiveRate: 0.0001}, keys)
	r := must.Get(Open(&block.Memory{Bytes: data}, cfile.ReaderOptions{}))(t)
	info := must.Get(r.Info())(t)
	if info.Filters != 3 || info.Hashes != 13 || info.Bitmap != 4096 || info.Bits != 3*8*4096 {
		t.Errorf("%+v", info)
	}
	// The false-positive rate for absent keys agrees with the share of bits that are set.
	wrong := 0
	const probes = 1 << 17
	for i := range probes {
		maybe := must.Get(r.MayContain(MakeProbe(fmt.Appendf(nil, "key%06dx", i%4000+i<<12))))(t)
		if maybe {
			wrong++
		}
	}
	if want := info.Wrong * probes; math.Abs(float64(wrong)-want) > 6*math.Sqrt(want)+3 {
		t.Errorf("%d false positives of %d, want about %.1f", wrong, probes, want)
	}
	data[len(data)/3] ^= 1
	must.Fail(t, must.Err(r.Info()), fault.ErrCorrupt)
}
