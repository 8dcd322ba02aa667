/* Needs libearly.so; all that matters has happened when main begins. */
int early_code(void);

int main(void) { return early_code(); }
