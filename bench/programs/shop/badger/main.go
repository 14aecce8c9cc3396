// Command badger is examples/shop with Badger.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// User is a value with the prefix of users.
type User struct {
	ID         int64
	Name, Mail string
}

// Item is a value with the prefix of items.
type Item struct{ Price, Left int64 } // the price is in cents

// Order is a value with the prefix of orders.
type Order struct {
	ID, User  int64
	Day, Item string
	Price     int64
}

// Prefixes of keys.
const (
	users  = "users/"   // ID
	names  = "names/"   // name; the value is the ID
	mails  = "mails/"   // e-mail address; the value is the ID
	items  = "items/"   // name
	orders = "orders/"  // ID
	byUser = "by_user/" // user, day, and ID of an order; no value
)

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func key[T string | []byte](prefix string, rest T) []byte { return append([]byte(prefix), rest...) }

func (o *Order) place() []byte {
	return slices.Concat([]byte(byUser), number(o.User), []byte(o.Day), number(o.ID))
}

func get(tx *badger.Txn, key []byte, value any) error {
	item, err := tx.Get(key)
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	return item.Value(func(data []byte) error { return json.Unmarshal(data, value) })
}

func set(tx *badger.Txn, key []byte, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.Set(key, data)
}

var errTwice = errors.New("a name or an address twice")

// Shop is safe for concurrent use.
type Shop struct {
	db  *badger.DB
	ids *badger.Sequence // of orders
}

// update runs a transaction, again if it has read what another one changed.
func (s *Shop) update(f func(tx *badger.Txn) error) error {
	for {
		if err := s.db.Update(f); !errors.Is(err, badger.ErrConflict) {
			return err
		}
	}
}

// AddUser adds a user. Errors: errTwice.
func (s *Shop) AddUser(u User) error {
	return s.update(func(tx *badger.Txn) error {
		for _, unique := range [][]byte{key(names, u.Name), key(mails, u.Mail)} {
			if _, err := tx.Get(unique); err == nil {
				return errTwice
			} else if !errors.Is(err, badger.ErrKeyNotFound) {
				return err
			}
			if err := set(tx, unique, u.ID); err != nil {
				return err
			}
		}
		return set(tx, key(users, number(u.ID)), u)
	})
}

// AddItem adds an item.
func (s *Shop) AddItem(name string, item Item) error {
	return s.update(func(tx *badger.Txn) error { return set(tx, key(items, name), item) })
}

// Buy sells an item on a day to the user with an e-mail address. It returns false if none is left.
func (s *Shop) Buy(mail, name string, day time.Time) (sold bool, err error) {
	id, err := s.ids.Next() // of an order that is not made, it is a gap
	if err != nil {
		return false, err
	}
	err = s.update(func(tx *badger.Txn) error {
		var item Item
		o := Order{ID: int64(id), Day: day.Format(time.DateOnly), Item: name}
		if err := errors.Join(get(tx, key(items, name), &item), get(tx, key(mails, mail), &o.User)); err != nil {
			return err
		}
		if sold = item.Left > 0; !sold {
			return nil
		}
		item.Left--
		o.Price = item.Price
		return errors.Join(set(tx, key(items, name), item), set(tx, key(orders, number(o.ID)), o), tx.Set(o.place(), nil))
	})
	return sold, err
}

// Next returns the first n orders of a user by day, after one of them.
func (s *Shop) Next(user int64, after Order, n int) ([]Order, error) {
	after.User = user
	after.ID++
	return s.page(user, after.place(), n, false)
}

// Last returns the last n orders of a user before one of them, the newest first.
func (s *Shop) Last(user int64, before Order, n int) ([]Order, error) {
	before.User = user
	before.ID--
	return s.page(user, before.place(), n, true)
}

// page returns orders of a user from a key of the index on.
func (s *Shop) page(user int64, from []byte, n int, reverse bool) (page []Order, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.Prefix, o.Reverse, o.PrefetchValues = key(byUser, number(user)), reverse, false
		it := tx.NewIterator(o)
		defer it.Close()
		for it.Seek(from); len(page) < n && it.Valid(); it.Next() {
			place := it.Item().Key()
			var order Order
			if err := get(tx, key(orders, place[len(place)-8:]), &order); err != nil {
				return err
			}
			page = append(page, order)
		}
		return nil
	})
	return page, err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	lamps := flag.Int("n", 1, "kinds of lamps: there are 100 of each, and each customer wants 10")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: badger [-n N] DIR")
	}
	db := must(badger.Open(badger.DefaultOptions(flag.Arg(0)).WithSyncWrites(true).WithLogger(nil)))
	defer db.Close()
	ids := must(db.GetSequence([]byte("order"), 1000))
	defer ids.Release()
	s := &Shop{db, ids}
	ada, bob := User{1, "Ada", "ada@example.org"}, User{2, "Bob", "bob@example.org"}
	must(0, errors.Join(s.AddUser(ada), s.AddUser(bob)))
	for i := range *lamps {
		must(0, s.AddItem(fmt.Sprint("lamp ", i), Item{Price: 1990, Left: 100}))
	}
	err := s.AddUser(User{3, "Cyd", "bob@example.org"})
	fmt.Println("an address twice:", errors.Is(err, errTwice))

	var customers sync.WaitGroup
	end := Order{Day: "9999-12-31"} // after all days
	for i := range 16 {
		customers.Go(func() {
			user := []User{ada, bob}[i%2]
			for n := range 10 * *lamps {
				name, day := fmt.Sprint("lamp ", (i+n)%*lamps), time.Date(2026, 3, 1+n%31, 0, 0, 0, 0, time.UTC)
				must(s.Buy(user.Mail, name, day))
				must(s.Last(user.ID, end, 5))
			}
		})
	}
	customers.Wait()
	sold, lamp := 0, Item{}
	must(0, db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.Prefix, o.PrefetchValues = []byte(orders), false
		it := tx.NewIterator(o)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			sold++
		}
		return get(tx, key(items, "lamp 0"), &lamp)
	}))
	fmt.Printf("wanted %d, sold %d, left %d\n", 160**lamps, sold, lamp.Left)
	first := must(s.Next(1, Order{}, 5))
	second := must(s.Next(1, first[4], 5))
	back := must(s.Last(1, second[0], 5))
	slices.Reverse(back)
	fmt.Println("back on the first page:", slices.Equal(first, back), "of", len(back))
}
