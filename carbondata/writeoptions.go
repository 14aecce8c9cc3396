package carbondata

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
)

// WriterOptions says how a Writer stores rows. The zero value means the defaults of CarbonData's
// SDK.
type WriterOptions struct {
	SortColumns   []string // the rows are stored in their order; if empty, in the order of Append
	InvertedIndex []string // sort columns of type STRING whose pages have an inverted index
	Compressor    string   // snappy (""), zstd, or gzip
	PageRows      int      // most rows of a page, at most 32000, the default
	BlockletBytes int64    // size of a blocklet, as the SDK counts; default 64 MiB
	FileBytes     int64    // size of a data file, as the SDK counts; default 1 GiB

	NoLocalDictionary   bool
	DictionaryThreshold int // most values of a local dictionary, 1000 to 100000; default 10000

	SortMemory int64  // bytes of rows in memory while they are sorted; default 64 MiB
	TempDir    string // of rows that are sorted; "": os.TempDir

	// ends the sorting, in Append and Close, when it is canceled; may be nil
	Context context.Context

	WrittenBy  string            // the footer says it; "": oribi
	Properties map[string]string // more entries of the footer, see FileInfo
	Time       time.Time         // in the names of files; zero: now
	Task       string            // in the names of files: letters and digits; "": 32 random hex digits
}

// MaxBlockletBytes is the maximum of WriterOptions.BlockletBytes.
const MaxBlockletBytes = 1 << 30

const (
	defaultBlockletBytes = 64 << 20
	defaultFileBytes     = 1 << 30
	defaultSortMemory    = 64 << 20
)

// check sets defaults.
func (o *WriterOptions) check() error {
	set := func(p *int64, value int64) {
		if *p == 0 {
			*p = value
		}
	}
	set(&o.BlockletBytes, defaultBlockletBytes)
	set(&o.FileBytes, defaultFileBytes)
	set(&o.SortMemory, defaultSortMemory)
	if o.PageRows == 0 {
		o.PageRows = defaultPageRows
	}
	if o.DictionaryThreshold == 0 {
		o.DictionaryThreshold = defaultDictionaryThreshold
	}
	if o.Compressor == "" {
		o.Compressor = codec.Snappy
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.WrittenBy == "" {
		o.WrittenBy = "oribi"
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	if o.Task == "" {
		o.Task = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	}
	switch {
	case o.PageRows < 1 || o.PageRows > defaultPageRows:
		return fmt.Errorf("%d rows of a page, want 1 to %d", o.PageRows, defaultPageRows)
	case o.BlockletBytes < 1 || o.BlockletBytes > MaxBlockletBytes:
		return fmt.Errorf("blocklets of %d bytes, want 1 to %d", o.BlockletBytes, MaxBlockletBytes)
	case o.FileBytes < 1:
		return fmt.Errorf("files of %d bytes", o.FileBytes)
	case o.DictionaryThreshold < minDictionaryThreshold || o.DictionaryThreshold > maxDictionaryThreshold:
		return fmt.Errorf("local dictionaries of %d values, want %d to %d", o.DictionaryThreshold,
			minDictionaryThreshold, maxDictionaryThreshold)
	case o.SortMemory < 0:
		return fmt.Errorf("%d bytes of memory for sorting", o.SortMemory)
	case strings.Trim(o.Task, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" ||
		len(o.Task) > 100:
		return fmt.Errorf("task %q: want letters and digits", o.Task)
	case o.Time.UnixMilli() < 0:
		return fmt.Errorf("time %v before 1970", o.Time)
	}
	return nil
}

// Limits of values. Source: carbondata spec §7.4.
const (
	maxTextChars = 32000         // of a STRING, in UTF-16
	maxTextBytes = math.MaxInt16 // of a STRING: its length has a sign
)

const (
	maxDictionaryBytes = 4 << 20

	defaultDictionaryThreshold = 10000
	minDictionaryThreshold     = 1000
	maxDictionaryThreshold     = 100000
)
