package uitest

// Markup is what a hostile user writes into a name or a message: it leaves an attribute, a tag and a comment, and makes an element.
const Markup = "\"'>--></script><hostile onclick=alert(1)>`javascript:alert(1)"
