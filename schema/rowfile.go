package schema

// RowFile says which rowsets of a table have a row file, which repeats their rows in pages of a few
// kilobytes: a read of a row then reads one page instead of a place of each column.
type RowFile uint8

const (
	// AutoRowFile lets each rowset decide. It has a row file if it has 65,536 rows or more, and if
	// half of its columns pack into at most half of their bytes: numbers, times, and byte strings with
	// few distinct values. The row file has those columns, and takes at most as many bytes as the files
	// of the columns, usually a quarter. It says where other byte strings are in their columns, if these do not compress.
	AutoRowFile RowFile = iota
	// NoRowFile is for tables that are only scanned.
	NoRowFile
	// FullRowFile gives each rowset a row file with all columns, and a directory of its keys. It is for
	// tables of many columns of byte strings that are larger than memory and are read by key.
	FullRowFile
)

var rowFileNames = [...]string{AutoRowFile: "auto", NoRowFile: "off", FullRowFile: "on"}

// String returns auto, off, or on.
func (f RowFile) String() string { return rowFileNames[f] }

// Valid reports whether f is one of the constants.
func (f RowFile) Valid() bool { return int(f) < len(rowFileNames) }

// RowFileOf returns the RowFile for a choice of true or false; nil stands for none.
func RowFileOf(on *bool) RowFile {
	switch {
	case on == nil:
		return AutoRowFile
	case *on:
		return FullRowFile
	}
	return NoRowFile
}

// Choice is the inverse of RowFileOf.
func (f RowFile) Choice() *bool {
	if f == AutoRowFile {
		return nil
	}
	on := f == FullRowFile
	return &on
}

// ParseRowFile returns the RowFile whose String is name; ok is false if there is none.
func ParseRowFile(name string) (f RowFile, ok bool) {
	for i, n := range rowFileNames {
		if n == name {
			return RowFile(i), true
		}
	}
	return 0, false
}
