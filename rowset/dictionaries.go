package rowset

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// Dictionaries remembers what dictionaries the columns of a table have. If the values of a column
// hardly repeat, its next files are written without a dictionary, which takes most of the time of
// writing it. If there are few words, the dictionary of the next file begins with the same words, so
// that merges take codes as they are.
//
// Nothing depends on it but the size and the form of files. The zero value is ready for use; a nil
// *Dictionaries remembers nothing. Safe for concurrent use.
type Dictionaries struct {
	mu      sync.Mutex
	columns map[schema.ColumnID]*dictionaryUse
}

type dictionaryUse struct {
	without int               // files to be written without a dictionary, before one tries again
	words   *batch.Dictionary // of the last file, if there are few; immutable
}

const (
	filesWithout = 15      // files of a column without a dictionary after a useless one
	fewWords     = 64      // most words that are remembered
	wordsBytes   = 4 << 10 // most bytes of them
)

// next returns the first words of the dictionary of a column's next file, nil for none. It reports
// whether the file is written without a dictionary.
func (d *Dictionaries) next(id schema.ColumnID) (first *batch.Dictionary, none bool) {
	if d == nil {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.columns[id]
	switch {
	case u == nil:
		return nil, false
	case u.without == 0:
		return u.words, false
	}
	u.without--
	return nil, true
}

// note remembers the dictionary of a finished file of a column.
func (d *Dictionaries) note(id schema.ColumnID, w *cfile.Writer) {
	if d == nil || !w.HasDictionary() {
		return
	}
	u := &dictionaryUse{words: w.Words(fewWords, wordsBytes)}
	if w.VainDictionary() {
		u.without = filesWithout
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.columns == nil {
		d.columns = map[schema.ColumnID]*dictionaryUse{}
	}
	d.columns[id] = u
}
