/** A primary key. */
final class Key {
  final long order;
  final int line;

  Key(long order, int line) {
    this.order = order;
    this.line = line;
  }
}
