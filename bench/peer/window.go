package peer

// WindowRows is how many rows a Window holds.
const WindowRows = 4096

// Window is the columns of some rows, for peers that hand out columns.
type Window struct{ Columns }

// NewWindow makes room for WindowRows rows of all columns that queries read.
func NewWindow() *Window {
	long := func() []int64 { return make([]int64, WindowRows) }
	text := func() [][]byte { return make([][]byte, WindowRows) }
	return &Window{Columns{PartKey: long(), Quantity: long(), Price: long(), Discount: long(), Tax: long(), ShipDate: make([]int32, WindowRows),
		Flag: text(), Status: text(), Mode: text()}}
}

// Long is the column of that name, nil if it is not one of int64.
func (w *Window) Long(name string) []int64 {
	switch name {
	case "l_partkey":
		return w.PartKey
	case "l_quantity":
		return w.Quantity
	case "l_extendedprice":
		return w.Price
	case "l_discount":
		return w.Discount
	case "l_tax":
		return w.Tax
	}
	return nil
}

// Text is the column of that name, nil if it is not one of texts.
func (w *Window) Text(name string) [][]byte {
	switch name {
	case "l_returnflag":
		return w.Flag
	case "l_linestatus":
		return w.Status
	case "l_shipmode":
		return w.Mode
	}
	return nil
}
