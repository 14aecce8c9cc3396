package rowset

import (
	"sync"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// Dictionaries remembers the columns of a table whose values hardly repeat, so that the next files
// are written without a dictionary, which takes most of the time of writing such a column. Nothing
// depends on it but the size and the form of files. The zero value is ready for use; a nil
// *Dictionaries remembers nothing. Safe for concurrent use.
type Dictionaries struct {
	mu   sync.Mutex
	rest map[schema.ColumnID]int // files to be written without a dictionary, before one tries again
}

// filesWithout is the number of files of a column that are written without a dictionary after one
// was of no use.
const filesWithout = 15

// skip reports whether the next file of a column is written without a dictionary.
func (d *Dictionaries) skip(id schema.ColumnID) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rest[id] == 0 {
		return false
	}
	d.rest[id]--
	return true
}

// note remembers the dictionary of a finished file of a column.
func (d *Dictionaries) note(id schema.ColumnID, w *cfile.Writer) {
	if d == nil || !w.VainDictionary() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rest == nil {
		d.rest = map[schema.ColumnID]int{}
	}
	d.rest[id] = filesWithout
}
