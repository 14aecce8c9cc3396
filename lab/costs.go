package lab

// costs are the sizes with which the simulation computes the bytes of files. All sizes are in
// bytes. A test compares simulations with runs of the engine "real".
type costs struct {
	RowSet float64 // of base data per rowset
	Row    float64 // of base data per row, besides its value: key, bloom filter, key directory
	Value  float64 // of base data per byte of a value

	DeltaFile  float64 // per redo or undo file
	Birth      float64 // of undos per row that was inserted within the history
	Delete     float64 // of redos per delete
	Change     float64 // of redos per update, and of undos per update that was applied to the base, besides the value
	DeltaValue float64 // of redos and undos per byte of such a value

	// A writer looks at the size of a rowset after so many rows, and does not see the bytes that
	// wait to be written. Neither matters where rowsets have the default size; 0 = it looks after
	// each row and sees all.
	Batch  int64
	Buffer float64
}

// fitted are the costs of a table with a key of type int64 and a value of random bytes, from tables
// of 100 to 20,000 rows with values of 20 to 400 bytes.
var fitted = costs{RowSet: 3000, Row: 5.4, Value: 1.0025, DeltaFile: 100, Birth: 8.2, Delete: 8.2,
	Change: 8.2, DeltaValue: 1.09}

// row returns the base data of a row.
func (m *costs) row(value float64) float64 { return m.Row + m.Value*value }

// change returns the bytes of an update in a redo or undo file.
func (m *costs) change(value float64) float64 { return m.Change + m.DeltaValue*value }

// full reports whether a writer ends a rowset that has so many rows and bytes.
func (m *costs) full(rows int64, bytes, target float64) bool {
	return (m.Batch == 0 || rows%m.Batch == 0) && bytes-m.Buffer >= target
}

// fullBytes returns the size at which a writer ends a rowset, if each row has perRow bytes.
func (m *costs) fullBytes(perRow, target float64) float64 {
	if m.Batch == 0 || perRow == 0 {
		return max(1, target)
	}
	rows := m.Batch
	for !m.full(rows, float64(rows)*perRow, target) {
		rows += m.Batch
	}
	return float64(rows) * perRow
}
